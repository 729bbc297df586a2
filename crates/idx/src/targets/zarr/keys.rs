//! Keys of the metadata of an array, and of the configurations in it, that readers of Zarr version 3 accept.
//!
//! Sources: the Zarr core specification, version 3.1, by which readers must fail on what they do not understand, and
//! zarr-python. Invariant: metadata that zarr-python refuses for its keys is refused here, too.

use serde_json::Value;

/// Keys of an array.
const OF_ARRAY: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
];

/// A part of the metadata that has a name and a configuration.
struct Part {
    name: &'static str,
    keys: &'static [&'static str],
    /// Whether readers need a configuration, even if it is empty.
    is_configured: bool,
}

const PARTS: [Part; 6] = [
    Part { name: "default", keys: &["separator"], is_configured: false },
    Part { name: "regular", keys: &["chunk_shape"], is_configured: true },
    Part {
        name: "sharding_indexed",
        keys: &["chunk_shape", "codecs", "index_codecs", "index_location"],
        is_configured: true,
    },
    Part { name: "bytes", keys: &["endian"], is_configured: false },
    Part { name: "gzip", keys: &["level"], is_configured: true },
    Part { name: "zstd", keys: &["level", "checksum"], is_configured: true },
];

/// Checks the keys of the metadata of an array. An error gives the reason.
pub(super) fn check(node: &Value) -> Result<(), String> {
    let may_be_ignored = |value: &Value| value["must_understand"] == Value::Bool(false);
    for (key, value) in node.as_object().into_iter().flatten() {
        if !OF_ARRAY.contains(&key.as_str()) && !may_be_ignored(value) {
            return Err(format!("has the key {key:?}, which no array of Zarr version 3 has"));
        }
    }
    if node["storage_transformers"].as_array().is_some_and(|transformers| !transformers.is_empty()) {
        return Err("has storage_transformers, which readers do not support".to_owned());
    }
    let axes = node["shape"].as_array().map_or(0, Vec::len);
    let are_names =
        |names: &Vec<Value>| names.len() == axes && names.iter().all(|name| name.is_string() || name.is_null());
    if !node["dimension_names"].is_null() && !node["dimension_names"].as_array().is_some_and(are_names) {
        return Err(format!("dimension_names are {}, not a name for each of {axes} axes", node["dimension_names"]));
    }
    check_part(&node["chunk_grid"])?;
    check_part(&node["chunk_key_encoding"])?;
    check_codecs(&node["codecs"])
}

/// Checks codecs, and those inside of shards.
fn check_codecs(codecs: &Value) -> Result<(), String> {
    for codec in codecs.as_array().into_iter().flatten() {
        check_part(codec)?;
        let configuration = &codec["configuration"];
        check_codecs(&configuration["codecs"])?;
        check_codecs(&configuration["index_codecs"])?;
        let levels = match codec["name"].as_str() {
            Some("gzip") => 0..=9,
            // Negative levels are faster ones.
            Some("zstd") => i64::MIN..=22,
            _ => continue,
        };
        let level = &configuration["level"];
        if !level.is_null() && !level.as_i64().is_some_and(|level| levels.contains(&level)) {
            return Err(format!("level of the codec {} cannot be {level}", codec["name"]));
        }
        let checksum = &configuration["checksum"];
        if !checksum.is_null() && !checksum.is_boolean() {
            return Err(format!("checksum of the codec {} cannot be {checksum}", codec["name"]));
        }
    }
    Ok(())
}

/// Checks the configuration of a part, which may be given by its name alone.
fn check_part(part: &Value) -> Result<(), String> {
    let name = part["name"].as_str().or(part.as_str());
    let Some(known) = PARTS.iter().find(|known| Some(known.name) == name) else { return Ok(()) };
    let Part { name, keys, is_configured } = known;
    let configuration = part["configuration"].as_object();
    if *is_configured && configuration.is_none() {
        return Err(format!("{name:?} has no configuration"));
    }
    match configuration.into_iter().flatten().find(|(key, _)| !keys.contains(&key.as_str())) {
        Some((key, _)) => {
            Err(format!("configuration of {name:?} has the key {key:?}; it can only have {}", keys.join(", ")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_keys_are_named() {
        let array = |codec: Value| {
            let sharding = json!({ "chunk_shape": [2], "codecs": [{ "name": "bytes" }, codec], "index_codecs": [] });
            json!({ "shape": [4], "codecs": [{ "name": "sharding_indexed", "configuration": sharding }] })
        };
        let reason = |codec: Value| check(&array(codec)).err().unwrap_or_default();
        assert_eq!(reason(json!({ "name": "zstd", "configuration": {} })), "");
        assert_eq!(reason(json!({ "name": "zstd", "configuration": { "level": -7, "checksum": true } })), "");
        assert_eq!(reason(json!("crc32c")), "");
        for (codec, says) in [
            (json!({ "name": "zstd", "configuration": { "levl": 3 } }), r#""zstd" has the key "levl""#),
            (json!({ "name": "zstd", "configuration": { "level": 23 } }), r#"level of the codec "zstd" cannot be 23"#),
            (json!({ "name": "zstd", "configuration": { "checksum": 1 } }), "checksum of the codec"),
            (json!({ "name": "gzip", "configuration": { "level": -1 } }), "cannot be -1"),
            (json!("gzip"), r#""gzip" has no configuration"#),
        ] {
            let found = reason(codec.clone());
            assert!(found.contains(says), "{codec}: {found}");
        }
        let mut other = array(json!("crc32c"));
        other["extra"] = json!({ "must_understand": false });
        assert_eq!(check(&other), Ok(()));
        other["extra"] = json!(1);
        assert!(check(&other).unwrap_err().contains("\"extra\""));
        other["extra"] = json!({ "must_understand": false });
        other["dimension_names"] = json!(["x", "y"]);
        assert!(check(&other).unwrap_err().contains("not a name for each of 1 axes"));
    }
}
