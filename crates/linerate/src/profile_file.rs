//! uperf profiles that are run as a workload.

use std::path::Path;

use linerate_compat::uperf::profile;
use linerate_model::profile::Profile;

use crate::failure::Failure;

/// Stands for the peer where a profile names its host by a variable that is not set.
const PEER: &str = "peer";

/// Reads a profile. Its variables are looked up in the environment; hosts need none, for they are all the peer.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    let say = |e: &dyn std::fmt::Display| Failure::usage(format!("--profile {}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| say(&e))?;
    let hosts = host_variables(&text);
    let environment = |name: &str| {
        let is_host = || hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
        std::env::var(name).ok().or_else(|| is_host().then(|| PEER.to_owned()))
    };
    profile::read(&text, &environment).map_err(|e| say(&e))
}

/// The variables by which a profile names hosts: `h` of `remotehost=$h`.
fn host_variables(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let behind = text.split("remotehost=$").skip(1);
    behind.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_hosts_are_found() {
        let text = r#"<flowop options="remotehost=$h1 protocol=$proto"/> <x options='remotehost=$other'/>"#;
        assert_eq!(host_variables(text), ["h1", "other"]);
        assert_eq!(host_variables("remotehost=plain"), [""; 0]);
    }
}
