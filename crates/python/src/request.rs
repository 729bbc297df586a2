//! Requests from the keywords of a call, which arrive as a JSON object.

use raddle::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use strsim::osa_distance;

/// Maximum number of edits between an unknown keyword and the known one that is suggested.
const MAX_EDITS: usize = 2;

/// Keywords that are also read from the environment, as in the command, with the names of their variables.
const IN_ENVIRONMENT: [(&str, &str); 2] = [("jobs", "RADDLE_JOBS"), ("memory", "RADDLE_MEMORY")];

/// Reads a request. Keywords that are left out have the value of their environment variable or the default of the
/// request. `arguments` are fields of the request that the call passes in another way.
///
/// # Errors
/// If a keyword is unknown or has an invalid value; the error names it.
pub fn read<T: DeserializeOwned + Serialize + Default>(keywords: &str, arguments: &[&str]) -> Result<T, Error> {
    let mut keywords: Map<String, Value> = serde_json::from_str(keywords)
        .map_err(|error| Error::usage(&format!("keywords that are not JSON: {error}")))?;
    let mut known = names::<T>();
    known.retain(|name| !arguments.contains(&name.as_str()));
    if let Some(unknown) = keywords.keys().find(|name| !known.contains(name)) {
        return Err(not_known(unknown, &known));
    }
    for (name, variable) in IN_ENVIRONMENT {
        let is_known = known.iter().any(|known| known == name);
        if let (true, false, Ok(text)) = (is_known, keywords.contains_key(name), std::env::var(variable)) {
            keywords.insert(name.to_owned(), serde_json::from_str(&text).unwrap_or(Value::String(text)));
        }
    }
    serde_json::from_value(Value::Object(keywords.clone())).map_err(|error| wrong_keyword::<T>(keywords, &error))
}

/// Names the keyword with an invalid value: a request with this keyword alone is invalid, too. Errors of flattened
/// fields do not name it.
fn wrong_keyword<T: DeserializeOwned>(keywords: Map<String, Value>, error: &serde_json::Error) -> Error {
    let found = keywords.into_iter().find_map(|(name, value)| {
        let text = format!("{name}={value}");
        let alone = Map::from_iter([(name, value)]);
        let error = serde_json::from_value::<T>(Value::Object(alone)).err()?;
        Some(format!("{text}: {}", reason(&error)))
    });
    Error::usage(&found.unwrap_or_else(|| error.to_string()))
}

/// Returns the message of an error without the value, which the caller names, and without names of Rust's types.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if let Some((_, expected)) = text.strip_prefix("unknown variant ").and_then(|text| text.split_once(", ")) {
        return expected.replace('`', "\"");
    }
    let expected = match text.strip_prefix("invalid ").and_then(|text| text.rsplit_once(", expected ")) {
        Some((_, "a nonzero usize" | "a nonzero u32" | "a nonzero u64")) => "a whole number, at least 1",
        Some((_, "usize" | "u8" | "u32" | "u64")) => "a whole number",
        Some((_, "f64")) => "a number",
        Some((_, "a boolean")) => "True or False",
        _ => return text,
    };
    format!("expected {expected}")
}

/// Returns the names of the fields of a request.
fn names<T: Serialize + Default>() -> Vec<String> {
    match serde_json::to_value(T::default()) {
        Ok(Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

fn not_known(name: &str, known: &[String]) -> Error {
    let error = Error::usage(&format!("unknown keyword {name}"));
    let near = known.iter().map(|known| (osa_distance(name, known), known)).min();
    match near {
        Some((count, known)) if count <= MAX_EDITS => error.hint(&format!("perhaps {known} is meant")),
        _ => error.hint(&format!("known keywords: {}", known.join(", "))),
    }
}
