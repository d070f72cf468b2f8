//! What the kernel of a guest gets when it asks for a module (`kernel.modprobe`, Documentation/admin-guide/sysctl/kernel.rst).

use linerate_link::module;

use super::init::{InitError, read_plan};
use super::{Load, PlannedModule};

/// Loads the module that has this name or alias; that there is none is no failure, since the kernel asks for much.
///
/// # Errors
/// This is no guest, or the kernel's refusal of the module.
pub fn load(wanted: &str) -> Result<(), InitError> {
    let plan = read_plan()?;
    let Some(module) = find(&plan.modules, wanted) else { return Ok(()) };
    module::load(&module.name, &module.parameters)?;
    Ok(())
}

fn find<'a>(modules: &'a [PlannedModule], wanted: &str) -> Option<&'a PlannedModule> {
    let plain = |name: &str| name.replace('-', "_");
    let asked = |module: &&PlannedModule| {
        module.load == Load::WhenAsked
            && (module.name == plain(wanted)
                || module.aliases.iter().any(|alias| plain(alias) == plain(wanted)))
    };
    modules.iter().find(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_found() {
        let module = |name: &str, load, alias: &str| PlannedModule {
            name: name.to_owned(),
            file: String::new(),
            parameters: String::new(),
            load,
            aliases: vec![alias.to_owned()],
        };
        let modules =
            [module("e1000", Load::Needed, "pci:x"), module("8021q", Load::WhenAsked, "rtnl-link-vlan")];
        let found = |wanted| find(&modules, wanted).map(|module| module.name.as_str());
        assert_eq!(found("rtnl-link-vlan"), Some("8021q"));
        assert_eq!(found("8021q"), Some("8021q"));
        assert_eq!(found("netdev-eth0"), None);
        assert_eq!(found("e1000"), None);
    }
}
