//! An HDF5 setting on the command line: `alignment=1MiB`, `chunk=256x16`, `defer_flush=on`.

use super::size::Size;
use raddle_tune::knob::{Knob, SettingKind, SettingValue};
use std::str::FromStr;

/// A setting and its value, as given by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Setting that the value applies to.
    pub knob: Knob,
    /// Value, of the setting's kind.
    pub value: SettingValue,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("a setting is NAME=VALUE, for example alignment=1MiB")?;
        let knob = Knob::ALL.into_iter().find(|knob| knob.name() == name);
        let knob = knob.ok_or_else(|| format!("known names are {}", Knob::ALL.map(Knob::name).join(", ")))?;
        let parsed = parse(knob.kind(), value).filter(|value| knob.check(value).is_ok());
        let value = parsed.ok_or_else(|| format!("{knob} is {}", knob.kind()))?;
        Ok(Self { knob, value })
    }
}

fn parse(kind: SettingKind, text: &str) -> Option<SettingValue> {
    Some(match kind {
        SettingKind::Flag => SettingValue::Flag(match text {
            "on" | "true" | "1" => true,
            "off" | "false" | "0" => false,
            _ => return None,
        }),
        SettingKind::Bytes if text == "0" => SettingValue::Whole(0),
        SettingKind::Bytes => SettingValue::Whole(text.parse::<Size>().ok()?.0),
        SettingKind::Count(_) => SettingValue::Whole(text.parse().ok()?),
        SettingKind::Fraction => SettingValue::Number(text.parse().ok()?),
        SettingKind::OneOf(_) | SettingKind::Object => SettingValue::Text(text.to_owned()),
        SettingKind::Shape => {
            SettingValue::Shape(text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_the_setting_s_kind() {
        let value = |text: &str| text.parse::<Setting>().map(|setting| setting.value);
        assert_eq!(value("alignment=1MiB"), Ok(SettingValue::Whole(1 << 20)));
        assert_eq!(value("defer_flush=on"), Ok(SettingValue::Flag(true)));
        assert_eq!(value("chunk=256x16"), Ok(SettingValue::Shape(vec![256, 16])));
        assert_eq!(value("libver=v110"), Ok(SettingValue::Text("v110".to_owned())));
        assert!(value("libver=newest").unwrap_err().contains("one of v18"));
        assert!(value("gzip=10").is_err() && value("gzip").is_err());
        assert!(value("zip=1").unwrap_err().contains("alignment"));
    }
}
