//! `linerate install-aliases`: links by the names of the tools that linerate stands in for.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use linerate_model::exit::ExitCode;

use crate::alias::NAMES;
use crate::cli::AliasArgs;
use crate::failure::Failure;

pub(crate) fn run(args: AliasArgs) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::node(format!("find own program: {e}")))?;
    for name in NAMES {
        let link = args.directory.join(name);
        match symlink(&program, &link) {
            Ok(()) => println!("{} -> {}", link.display(), program.display()),
            // A link of ours is as good as new; anything else there is somebody's program.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let ours = std::fs::read_link(&link).is_ok_and(|target| target == program);
                if !ours {
                    let words = "something else is there; remove it first, or choose another directory";
                    return Err(Failure::node(format!("make {}: {words}", link.display())));
                }
                println!("{} is there already", link.display());
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(Failure::permission(format!("make {}: {e}", link.display())));
            }
            Err(e) => return Err(Failure::node(format!("make {}: {e}", link.display()))),
        }
    }
    Ok(ExitCode::Good)
}
