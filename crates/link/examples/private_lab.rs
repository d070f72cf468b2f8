//! Makes a private lab and holds it until its standard input ends; or moves into a namespace and lists its links.
//!
//! `cargo run -p linerate-link --example private_lab` as root or as an ordinary user. The tests of this crate run it too:
//! only a process with one thread can move as a whole, and a test has more.

use std::io::Read;

use linerate_link::lab::{LabOptions, PrivateLab};
use linerate_link::{links, route_to};
use linerate_sys::netns;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    match std::env::args().collect::<Vec<_>>().as_slice() {
        [_] => hold_lab(),
        [_, mode] if mode == "user" => become_user_root(),
        [_, mode] if mode == "keep" => keep_lab(),
        [_, mode, name] if mode == "enter" => list_links(name),
        [program, ..] => Err(format!("usage: {program} [keep | user | enter NAME]").into()),
        [] => Err("no arguments at all".into()),
    }
}

fn hold_lab() -> Outcome {
    become_root()?;
    let lab = PrivateLab::create(LabOptions::default())?;
    for end in [lab.dut(), lab.peer()] {
        println!("{} {} {} {:?}", end.netns, end.link, end.ipv4, end.ipv6);
    }
    let target = lab.peer().ipv4.into();
    println!("route {:?}", linerate_link::in_netns(&lab.dut().netns, || route_to(target))?);
    println!("lab {}", lab.id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    lab.remove()?;
    println!("left {:?}", netns::list()?);
    Ok(())
}

fn keep_lab() -> Outcome {
    become_root()?;
    let kept = PrivateLab::create(LabOptions::default())?.keep()?;
    let holder = kept.needs_holder.then(std::process::id);
    println!("enter {}", kept.enter_command(&kept.dut, holder).join(" "));
    println!("lab {}", kept.id);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn list_links(name: &str) -> Outcome {
    let hidden = netns::enter_process(name)?;
    // A later thread is inside too, and so is its /sys.
    let names = std::thread::spawn(|| std::fs::read_dir("/sys/class/net").map(Iterator::count));
    let count = names.join().map_err(|_| "the thread panicked")??;
    let names: Vec<_> = links::all()?.into_iter().map(|link| link.name).collect();
    println!("links {names:?}, in sysfs {count}, hidden {hidden:?}");
    Ok(())
}

fn become_root() -> Outcome {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    become_user_root()
}

fn become_user_root() -> Outcome {
    println!("hidden {:?}", netns::unshare_user_root()?);
    Ok(())
}
