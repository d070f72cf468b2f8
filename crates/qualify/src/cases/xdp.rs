//! Cases of the area `xdp`.

pub(crate) mod xdp_01;
pub(crate) mod xdp_02;
pub(crate) mod xdp_03;

use linerate_model::bench::{Handle, XdpAction, XdpMode, XdpSpec};
use linerate_model::qualification::ReasonCode;

use crate::bench::Bench;
use crate::trouble::Trouble;

/// A program that passes every frame, in the mode that the variant's name begins with.
fn pass(bench: &Bench) -> XdpSpec {
    let native = bench.variant().starts_with("native");
    XdpSpec {
        link: String::new(),
        mode: if native { XdpMode::Native } else { XdpMode::Generic },
        action: XdpAction::Pass,
        head_bytes: 0,
        tail_bytes: 0,
        frags: false,
    }
}

/// Attaches a program to the dut; a driver that has no native XDP is skipped, any other refusal is a fault.
fn attach(bench: &mut Bench, spec: XdpSpec) -> Result<Handle, Trouble> {
    let native = spec.mode == XdpMode::Native;
    match bench.dut.attach_xdp(spec)? {
        Ok(program) => Ok(program),
        Err(why) if why.contains("not permitted") => Err(Trouble::no_permission(why)),
        Err(why) if native && why.contains("not supported") => {
            Err(Trouble::no_feature(format!("{} has no native XDP: {why}", bench.dut.driver())))
        }
        Err(why) => {
            bench.fail(ReasonCode::Refused, why.clone());
            Err(Trouble::no_feature(why))
        }
    }
}

/// A veth end takes frames of XDP only where its own NAPI runs, which a program of its own sees to
/// (`veth_xdp_xmit` in drivers/net/veth.c).
fn wake_veth(bench: &mut Bench) -> Result<Option<Handle>, Trouble> {
    if !bench.peer.is_veth() {
        return Ok(None);
    }
    let spec = XdpSpec { mode: XdpMode::Native, ..pass(bench) };
    Ok(bench.peer.attach_xdp(spec)?.ok())
}
