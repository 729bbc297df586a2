//! Requests from the keywords of a call, which arrive as a JSON object.

use raddle::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use strsim::osa_distance;

/// Most edits by which a keyword may differ from a known one to be suggested.
const MAX_EDITS: usize = 2;

/// Reads a request. Keywords that are left out have the default of the request.
///
/// # Errors
/// If a keyword is unknown or has an invalid value; the error names it.
pub fn read<T: DeserializeOwned + Serialize + Default>(keywords: &str) -> Result<T, Error> {
    let keywords: Map<String, Value> = serde_json::from_str(keywords)
        .map_err(|error| Error::usage(&format!("keywords that are not JSON: {error}")))?;
    let known = names::<T>();
    if let Some(unknown) = keywords.keys().find(|name| !known.contains(name)) {
        return Err(not_known(unknown, &known));
    }
    serde_json::from_value(Value::Object(keywords.clone())).map_err(|error| {
        // Errors of flattened fields do not say which one is meant.
        let is_wrong = |(name, value): &(&String, &Value)| {
            let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
            serde_json::from_value::<T>(Value::Object(alone)).is_err()
        };
        match keywords.iter().find(is_wrong) {
            Some((name, value)) => Error::usage(&format!("{name}={value}: {}", reason(&error))),
            None => Error::usage(&error.to_string()),
        }
    })
}

/// Returns the message of an error without the value, which the caller names.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("unknown variant ").and_then(|text| text.split_once(", ")) {
        Some((_, expected)) => expected.replace('`', "\""),
        None => text,
    }
}

/// Returns the names of the fields of a request.
fn names<T: Serialize + Default>() -> Vec<String> {
    match serde_json::to_value(T::default()) {
        Ok(Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

fn not_known(name: &str, known: &[String]) -> Error {
    let error = Error::usage(&format!("there is no keyword {name}"));
    let near = known.iter().map(|known| (osa_distance(name, known), known)).min();
    match near {
        Some((count, known)) if count <= MAX_EDITS => error.hint(&format!("perhaps {known} is meant")),
        _ => error.hint(&format!("known keywords: {}", known.join(", "))),
    }
}
