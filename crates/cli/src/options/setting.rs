//! A setting of HDF5 on the command line: `alignment=1MiB`, `chunk=256x16`, `defer_flush=on`.

use super::size::Size;
use raddle_tune::knob::{Kind, Knob, Value};
use std::str::FromStr;

/// A setting and its value, as given by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Setting that the value applies to.
    pub knob: Knob,
    /// Value, of the setting's kind.
    pub value: Value,
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

fn parse(kind: Kind, text: &str) -> Option<Value> {
    Some(match kind {
        Kind::Flag => Value::Flag(match text {
            "on" | "true" | "1" => true,
            "off" | "false" | "0" => false,
            _ => return None,
        }),
        Kind::Bytes if text == "0" => Value::Whole(0),
        Kind::Bytes => Value::Whole(text.parse::<Size>().ok()?.0),
        Kind::Count(_) => Value::Whole(text.parse().ok()?),
        Kind::Fraction => Value::Number(text.parse().ok()?),
        Kind::OneOf(_) | Kind::Object => Value::Text(text.to_owned()),
        Kind::Shape => Value::Shape(text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_the_setting_s_kind() {
        let value = |text: &str| text.parse::<Setting>().map(|setting| setting.value);
        assert_eq!(value("alignment=1MiB"), Ok(Value::Whole(1 << 20)));
        assert_eq!(value("defer_flush=on"), Ok(Value::Flag(true)));
        assert_eq!(value("chunk=256x16"), Ok(Value::Shape(vec![256, 16])));
        assert_eq!(value("libver=v110"), Ok(Value::Text("v110".to_owned())));
        assert!(value("libver=newest").unwrap_err().contains("one of v18"));
        assert!(value("gzip=10").is_err() && value("gzip").is_err());
        assert!(value("zip=1").unwrap_err().contains("alignment"));
    }
}
