//! Settings of one end.

use linerate_link::settings::SettingInfo;
use linerate_model::bench::BenchRequest;

use super::Station;
use crate::trouble::Trouble;

impl Station {
    /// All settings of the link now.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn settings(&mut self) -> Result<Vec<SettingInfo>, Trouble> {
        self.watch.check()?;
        let link = self.facts.name.clone();
        Ok(self.node.settings(&link)?)
    }

    /// A setting's value now; `None` where it can't be read here.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn setting(&mut self, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.setting_info(key)?.and_then(|setting| setting.value))
    }

    /// A setting with what it takes; `None` where the link has none of this name.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn setting_info(&mut self, key: &str) -> Result<Option<SettingInfo>, Trouble> {
        Ok(self.settings()?.into_iter().find(|setting| setting.key == key))
    }

    /// Changes a setting; it is put back after the case.
    ///
    /// # Errors
    /// As [`Station::ask`]; a refusal is trouble.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Trouble> {
        self.note(key, None, value);
        self.ask(&self.set_request(key, value)).map(drop)
    }

    /// Changes a setting that the kernel may refuse: then its words.
    ///
    /// # Errors
    /// As [`Station::try_ask`].
    pub fn try_set(&mut self, key: &str, value: &str) -> Result<Result<(), String>, Trouble> {
        self.note(key, None, value);
        Ok(self.try_ask(&self.set_request(key, value))?.map(drop))
    }

    /// Whether a feature is on now, by ethtool's short name or the kernel's; `None` where the link does not have it.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn feature(&mut self, name: &str) -> Result<Option<bool>, Trouble> {
        Ok(match self.setting(name)?.as_deref() {
            Some("on") => Some(true),
            Some("off") => Some(false),
            _ => None,
        })
    }

    /// Whether a feature, or another setting, can be changed.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn is_changeable(&mut self, key: &str) -> Result<bool, Trouble> {
        Ok(self.setting_info(key)?.is_some_and(|setting| setting.changeable))
    }

    /// Switches off what is on of these features; what is fixed, or not there, stays as it is. Gives those that are still
    /// on.
    ///
    /// # Errors
    /// As [`Station::ask`].
    pub fn switch_off(&mut self, features: &[&str]) -> Result<Vec<String>, Trouble> {
        let settings = self.settings()?;
        let on = |name: &str| settings.iter().any(|s| s.key == name && s.value.as_deref() == Some("on"));
        let mut still_on = Vec::new();
        for name in features.iter().copied().filter(|name| on(name)) {
            if self.try_set(name, "off")?.is_err() {
                still_on.push(name.to_owned());
            }
        }
        Ok(still_on)
    }

    fn set_request(&self, key: &str, value: &str) -> BenchRequest {
        BenchRequest::Set { link: self.facts.name.clone(), key: key.to_owned(), value: value.to_owned() }
    }
}
