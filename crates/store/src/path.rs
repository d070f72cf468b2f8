//! Where the history is kept unless `--db` says otherwise.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use nix::unistd::{Uid, User, geteuid};

use crate::error::StoreError;

/// `$XDG_DATA_HOME/linerate/history.db`, or `~/.local/share/linerate/history.db` (XDG Base Directory Specification;
/// a relative `$XDG_DATA_HOME` is ignored, as it says).
///
/// Without `$HOME`, as under some service managers, home is that of the effective user in the password database.
///
/// # Errors
/// [`StoreError::NoHome`] when there is none there either.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let uid = geteuid();
    choose(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"), || home_of(uid))
        .ok_or_else(|| StoreError::NoHome { uid: uid.as_raw() })
}

fn choose(
    data_home: Option<OsString>,
    home: Option<OsString>,
    account_home: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let data = match data_home.and_then(absolute) {
        Some(data) => data,
        None => home.and_then(absolute).or_else(account_home)?.join(".local/share"),
    };
    Some(data.join("linerate/history.db"))
}

fn home_of(uid: Uid) -> Option<PathBuf> {
    let user = User::from_uid(uid).ok()??;
    Some(user.dir).filter(|dir| dir.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_come_before_the_account() {
        let path = |data: Option<&str>, home: Option<&str>| {
            let account = || Some(PathBuf::from("/account"));
            choose(data.map(OsString::from), home.map(OsString::from), account).unwrap()
        };
        assert_eq!(path(Some("/data"), Some("/home/me")), PathBuf::from("/data/linerate/history.db"));
        let at_home = PathBuf::from("/home/me/.local/share/linerate/history.db");
        assert_eq!(path(None, Some("/home/me")), at_home);
        assert_eq!(path(Some("relative"), Some("/home/me")), at_home);
        assert_eq!(path(Some(""), Some("/home/me")), at_home);
        let of_account = PathBuf::from("/account/.local/share/linerate/history.db");
        assert_eq!(path(None, None), of_account);
        assert_eq!(path(None, Some("")), of_account);
        assert_eq!(choose(None, None, || None), None);
    }

    #[test]
    fn root_has_a_home_without_variables() {
        assert!(home_of(Uid::from_raw(0)).is_some());
    }
}
