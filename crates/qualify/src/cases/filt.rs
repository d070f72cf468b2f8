//! Cases of the area `filt`.

pub(crate) mod filt_01;
pub(crate) mod filt_02;
pub(crate) mod filt_03;
pub(crate) mod filt_04;
pub(crate) mod filt_05;
pub(crate) mod filt_06;

use linerate_model::bench::frame::MacAddress;

use crate::bench::{Bench, Way};
use crate::frame::out;
use crate::must::delivery::probe_id;
use crate::trouble::Trouble;

/// A link without a receive filter shows every frame as another host's (drivers/net/veth.c): nothing to judge.
fn needs_filter(bench: &Bench) -> Result<(), Trouble> {
    if bench.dut.is_veth() {
        return Err(Trouble::not_shown("a veth link has no receive filter"));
    }
    Ok(())
}

/// Sends the dut a probe to each address; tells which came through its filter.
fn count_arrivals(bench: &mut Bench, to: &[MacAddress]) -> Result<Vec<bool>, Trouble> {
    let lane = bench.lane(Way::ToDut)?;
    let hosts = bench.hosts(Way::ToDut);
    let probes = bench.probes(&hosts, &vec![100; to.len()]);
    let frames: Vec<_> = probes
        .into_iter()
        .zip(to)
        .map(|(mut probe, to)| {
            probe[..6].copy_from_slice(to);
            out(probe)
        })
        .collect();
    let arrived = bench.try_exchange(&lane, &frames, to.len())?;
    bench.close_lane(&lane)?;
    let mut came = vec![false; to.len()];
    for (id, _) in arrived.frames.iter().filter_map(|frame| probe_id(&frame.bytes)) {
        if let Some(came) = came.get_mut(id.sequence as usize) {
            *came = true;
        }
    }
    Ok(came)
}
