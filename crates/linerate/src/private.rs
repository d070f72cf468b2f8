//! The private lab of a run without a named peer: taken away afterwards, or left up with a process that holds it.

use std::process::{Command, Stdio};

use linerate_lab::connect::Place;
use linerate_link::lab::KeptLab;

use crate::failure::Failure;

/// A lab that stays up.
pub(crate) struct Kept {
    lab: KeptLab,
    /// The process that holds it, where one is needed.
    holder: Option<u32>,
}

/// Takes the lab away, or leaves it up where `keep` says so.
pub(crate) fn leave(place: Place, keep: bool) -> Result<Option<Kept>, Failure> {
    let Place::Lab(lab) = place else { return Ok(None) };
    if !keep {
        lab.remove().map_err(|e| Failure::node(format!("remove the private lab: {e}")))?;
        return Ok(None);
    }
    let kept = lab.keep().map_err(|e| Failure::node(format!("keep the private lab: {e}")))?;
    let holder = if kept.needs_holder { Some(spawn_holder()?) } else { None };
    Ok(Some(Kept { lab: kept, holder }))
}

fn spawn_holder() -> Result<u32, Failure> {
    use std::os::unix::process::CommandExt;
    let program =
        std::env::current_exe().map_err(|e| Failure::node(format!("find this program's own file: {e}")))?;
    Command::new(program)
        .args(["lab", "hold"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(|child| child.id())
        .map_err(|e| Failure::node(format!("start the process that holds the lab: {e}")))
}

impl Kept {
    /// Says on stderr how to enter and remove it.
    pub(crate) fn tell(&self) {
        let Self { lab, holder } = self;
        eprintln!("The lab {} stays up.", lab.id);
        eprintln!("  enter the dut:   {}", lab.enter_command(&lab.dut, *holder).join(" "));
        for peer in &lab.peers {
            eprintln!("  enter the peer:  {}", lab.enter_command(peer, *holder).join(" "));
        }
        match holder {
            Some(pid) => eprintln!("  remove:          kill {pid}"),
            None => {
                let peers: Vec<String> = lab.peers.iter().map(|p| format!("netns:{}", p.netns)).collect();
                eprintln!(
                    "  measure in it:   linerate run {} --dut netns:{}",
                    peers.join(" "),
                    lab.dut.netns
                );
                eprintln!("  remove:          linerate lab remove {}", lab.id);
            }
        }
    }
}
