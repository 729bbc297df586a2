//! Values of options as text, as in the command and in Python: `"512MiB"`, `"65536rows"`, `"2/8"`.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::str::FromStr;

/// A single text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

fn parse<T: FromStr<Err: Display>, E: serde::de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
}

/// A value that is not required.
pub mod optional {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parse};

    /// Writes the value as text.
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    /// Parses a string.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parse(&text)).transpose()
    }
}

/// A value with a default.
pub mod required {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parse};

    /// Writes the value as text.
    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Parses a string.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        parse(&String::deserialize(deserializer)?)
    }
}

/// Values of an option that may be given several times. A single text is one value.
pub mod list {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, Texts, parse};

    /// Writes the values as strings.
    pub fn serialize<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(ToString::to_string))
    }

    /// Parses one string, or each of several.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        match Texts::deserialize(deserializer)? {
            Texts::One(text) => Ok(vec![parse(&text)?]),
            Texts::Several(texts) => texts.iter().map(|text| parse(text)).collect(),
        }
    }
}

/// Values of an option that takes a list with commas. A single text is such a list.
pub mod commas {
    use super::{Deserialize, Deserializer, Display, FromStr, Texts, parse};

    pub use super::list::serialize;

    /// Parses a string of parts that are separated by commas, or a list of strings of one part each.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        match Texts::deserialize(deserializer)? {
            Texts::One(text) => text.split(',').map(parse).collect(),
            Texts::Several(texts) => texts.iter().map(|text| parse(text)).collect(),
        }
    }
}

/// An option whose value may be left out: `true` for the option alone.
pub mod flag {
    use super::{Deserialize, DeserializeOwned, Deserializer, Serialize, Serializer};
    use serde::de::Error;

    /// Writes `true`, or the value.
    pub fn serialize<T: Serialize, S: Serializer>(value: &Option<Option<T>>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            None => serializer.serialize_none(),
            Some(None) => serializer.serialize_bool(true),
            Some(Some(value)) => value.serialize(serializer),
        }
    }

    /// Reads a Boolean or a value.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null | serde_json::Value::Bool(false) => Ok(None),
            serde_json::Value::Bool(true) => Ok(Some(None)),
            value => serde_json::from_value(value).map(|value| Some(Some(value))).map_err(D::Error::custom),
        }
    }
}

/// Reads an option; `true` stands for `all`.
///
/// # Errors
/// If the value is neither a Boolean nor one of the words of `T`.
pub fn true_or_word<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
    all: T,
) -> Result<Option<T>, D::Error> {
    match flag::deserialize(deserializer) {
        Ok(Some(None)) => Ok(Some(all)),
        Ok(value) => Ok(value.flatten()),
        Err(error) => Err(D::Error::custom(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::PathBuf;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Options {
        #[serde(with = "optional")]
        number: Option<u8>,
        #[serde(with = "list")]
        patterns: Vec<String>,
        #[serde(with = "commas")]
        columns: Vec<u8>,
        #[serde(with = "flag")]
        folder: Option<Option<PathBuf>>,
    }

    fn read(value: serde_json::Value) -> Options {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_are_texts_lists_and_flags() {
        assert_eq!(read(json!({})), Options::default());
        assert_eq!(read(json!({"number": "7"})).number, Some(7));
        assert_eq!(read(json!({"patterns": "/a,b"})).patterns, ["/a,b"]);
        assert_eq!(read(json!({"patterns": ["/a", "/b"]})).patterns, ["/a", "/b"]);
        assert_eq!(read(json!({"columns": "1,2"})).columns, [1, 2]);
        assert_eq!(read(json!({"columns": ["1", "2"]})).columns, [1, 2]);
        assert_eq!(read(json!({"folder": true})).folder, Some(None));
        assert_eq!(read(json!({"folder": false})).folder, None);
        assert_eq!(read(json!({"folder": "a"})).folder, Some(Some("a".into())));
        assert!(serde_json::from_value::<Options>(json!({"columns": "1,x"})).is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let options =
            Options { number: Some(3), patterns: vec!["/a".to_owned()], columns: vec![1, 2], folder: Some(None) };
        assert_eq!(read(serde_json::to_value(&options).unwrap()), options);
    }
}
