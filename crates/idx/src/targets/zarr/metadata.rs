//! Writing and parsing of `zarr.json`.
//!
//! It covers Zarr version 3 arrays and groups, and the image metadata of OME-NGFF 0.5 in the attribute `ome`;
//! samples are read elsewhere. Invariant: accepted metadata describes arrays that `shard` can read; otherwise the error
//! names what was found.

use super::fault::ZarrFault;
use super::layout::{ChunkCompression, ImageLayout, is_space};
use super::shard::{ShardForm, named_gzip_level, zstd_level};
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::sample::SampleType;
use raddle_codec::Effort;
use raddle_core::plan::extent::product;
use serde_json::{Value, json};
use std::path::Path;

/// Name of the file that describes an array or a group.
pub(crate) const FILE_NAME: &str = "zarr.json";

/// Version of OME-NGFF.
const OME_VERSION: &str = "0.5";

/// Attribute of arrays and images that only raddle uses.
const ATTRIBUTE: &str = "raddle";

/// Serialises a group or array.
fn text(node: &Value) -> String {
    // Plain values with string keys can always be serialised.
    let mut text = serde_json::to_string_pretty(node).unwrap_or_default();
    text.push('\n');
    text
}

fn group(attributes: Value) -> String {
    text(&json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }))
}

/// Returns the metadata of the group of several images.
pub(crate) fn collection() -> String {
    group(json!({ "ome": { "version": OME_VERSION, "bioformats2raw.layout": 3 } }))
}

/// Returns the metadata of the group `OME`, which lists several images.
pub(crate) fn series(form: &ImageLayout) -> String {
    let names: Vec<&str> = form.fields.iter().map(|(name, _)| name.as_str()).collect();
    group(json!({ "ome": { "version": OME_VERSION, "series": names } }))
}

/// Returns the metadata of the group of an image.
pub(crate) fn image(form: &ImageLayout, field: usize) -> String {
    let names = form.array_axes(field);
    let axis = |name: &char| {
        let mut axis = json!({ "name": name.to_string(), "type": axis_type(*name) });
        if is_space(*name)
            && let Some(unit) = &form.unit
        {
            axis["unit"] = json!(unit);
        }
        axis
    };
    let axes: Vec<Value> = names.iter().map(axis).collect();
    let dataset = |number: usize| {
        let level = &form.levels[number];
        let scale = form.of_array(field, 1.0, 1.0, &|axis| form.distances[axis] * level.spacing[axis] as f64);
        let mut transformations = vec![json!({ "type": "scale", "scale": scale })];
        if form.downsample == super::Downsample::Average {
            // A mean lies in the middle of its cell.
            let middle = |axis: usize| form.distances[axis] * (level.spacing[axis] - 1) as f64 / 2.0;
            let translation = form.of_array(field, 0.0, 0.0, &middle);
            transformations.push(json!({ "type": "translation", "translation": translation }));
        }
        json!({ "path": number.to_string(), "coordinateTransformations": transformations })
    };
    let datasets: Vec<Value> = (0..form.levels.len()).map(dataset).collect();
    let mut attributes = json!({
        "ome": {
            "version": OME_VERSION,
            "multiscales": [{
                "name": form.fields[field].0,
                "axes": axes,
                "datasets": datasets,
                "type": form.downsample.name(),
            }],
        },
    });
    if !form.step_numbers.is_empty() {
        attributes[ATTRIBUTE] = json!({ "steps": form.step_numbers });
    }
    group(attributes)
}

fn axis_type(name: char) -> &'static str {
    match name {
        't' => "time",
        'c' => "channel",
        _ => "space",
    }
}

/// Returns the metadata of the array of a level with `shards` stored shards.
pub(crate) fn array(form: &ImageLayout, field: usize, level: usize, shards: u64, effort: Effort) -> String {
    let sample = form.fields[field].1;
    let of_array = |of: &Point, step: u64, component: u64| form.of_array(field, step, component, &|axis| of[axis]);
    let components = sample.count as u64;
    let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let checksum = json!({ "name": "crc32c" });
    let compressor = match form.compression {
        ChunkCompression::None => None,
        ChunkCompression::Gzip => {
            Some(json!({ "name": "gzip", "configuration": { "level": named_gzip_level(effort) } }))
        }
        ChunkCompression::Zstd => {
            let configuration = json!({ "level": zstd_level(effort), "checksum": false });
            Some(json!({ "name": "zstd", "configuration": configuration }))
        }
    };
    let codecs: Vec<Value> = [Some(bytes.clone()), compressor, Some(checksum.clone())].into_iter().flatten().collect();
    let names: Vec<String> = form.array_axes(field).iter().map(char::to_string).collect();
    let is_float = sample.number.name().starts_with("float");
    text(&json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": of_array(&form.levels[level].counts, form.steps.unwrap_or(1), components),
        "data_type": sample.number.name(),
        "chunk_grid": {
            "name": "regular",
            "configuration": { "chunk_shape": of_array(&form.shard, 1, components) },
        },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": if is_float { json!(0.0) } else { json!(0) },
        "codecs": [{
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": of_array(&form.chunk, 1, components),
                "codecs": codecs,
                "index_codecs": [bytes, checksum],
                "index_location": "end",
            },
        }],
        "dimension_names": names,
        "attributes": { ATTRIBUTE: { "shards": shards } },
    }))
}

/// Contents of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GroupContents {
    /// An image, with its metadata.
    Image(ImageMetadata),
    /// Several images, listed in group `OME`.
    Collection,
    /// Images at these paths, below the folder that contains group `OME`.
    Series(Vec<String>),
}

/// An image, as described by its group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageMetadata {
    /// Name of the image; empty if it has none.
    pub(crate) name: String,
    /// Names of the axes, x first.
    pub(crate) axes: Vec<char>,
    /// Unit of the x axis, if it has one.
    pub(crate) unit: Option<String>,
    /// Method by which levels were computed.
    pub(crate) method: Option<String>,
    /// Path and scale, x first, of each level.
    pub(crate) levels: Vec<(String, Vec<f64>)>,
    /// Numbers of the time steps, ascending; empty if they are counted from 0.
    pub(crate) step_numbers: Vec<u64>,
}

/// An array; all its axes are treated as axes of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrayMetadata {
    /// Number of samples per axis, x first.
    pub(crate) counts: Point,
    pub(crate) form: ShardForm,
    /// Number of stored shards, if the writer recorded it.
    pub(crate) shards: Option<u64>,
}

/// Parser of one metadata file, whose name goes into errors.
struct MetadataParser<'a> {
    file: &'a Path,
}

impl MetadataParser<'_> {
    fn refused(&self, reason: impl Into<String>) -> ZarrFault {
        ZarrFault::Metadata { file: self.file.to_path_buf(), reason: reason.into() }
    }

    fn unsupported(&self, what: impl Into<String>) -> ZarrFault {
        ZarrFault::Unsupported { file: self.file.to_path_buf(), what: what.into() }
    }

    fn node(&self, bytes: &[u8], kind: &str) -> Result<Value, ZarrFault> {
        let node: Value = serde_json::from_slice(bytes).map_err(|error| self.refused(format!("not JSON: {error}")))?;
        if node["zarr_format"] != json!(3) {
            return Err(self.unsupported(format!("Zarr of format {}", node["zarr_format"])));
        }
        if node["node_type"] != json!(kind) {
            return Err(self.refused(format!("describes a node of type {}, not {kind:?}", node["node_type"])));
        }
        Ok(node)
    }

    /// Parses a list of numbers above 0, one per axis, and returns it x first.
    fn counts(&self, value: &Value, what: &str) -> Result<Vec<u64>, ZarrFault> {
        let counts = value.as_array().and_then(|counts| counts.iter().rev().map(Value::as_u64).collect());
        let counts: Option<Vec<u64>> = counts;
        let fits = |counts: &Vec<u64>| (1..=MAX_RANK).contains(&counts.len()) && !counts.contains(&0);
        counts
            .filter(fits)
            .ok_or_else(|| self.refused(format!("{what} is {value}, not 1 to {MAX_RANK} numbers above 0")))
    }
}

/// Parses the metadata of a group.
///
/// # Errors
/// If it does not lead to images.
pub(crate) fn parse_group(file: &Path, bytes: &[u8]) -> Result<GroupContents, ZarrFault> {
    let reading = MetadataParser { file };
    let node = reading.node(bytes, "group")?;
    let ome = &node["attributes"]["ome"];
    if let Some(series) = ome["series"].as_array() {
        let names: Option<Vec<String>> = series.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        let is_inside =
            |name: &String| !name.is_empty() && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let names = names.filter(|names| !names.is_empty() && names.iter().all(is_inside));
        return names
            .map(GroupContents::Series)
            .ok_or_else(|| reading.refused("series does not list paths of groups below"));
    }
    if !ome["bioformats2raw.layout"].is_null() {
        return Ok(GroupContents::Collection);
    }
    let Some(multiscale) = ome["multiscales"].as_array().and_then(|all| all.first()) else {
        return Err(reading.unsupported("a group without attribute ome.multiscales of OME-NGFF 0.5"));
    };
    let axes: Option<Vec<char>> = multiscale["axes"].as_array().and_then(|axes| {
        let name = |axis: &Value| axis["name"].as_str().and_then(|name| name.parse().ok());
        axes.iter().rev().map(name).collect()
    });
    let axes = axes.filter(|axes| (1..=MAX_RANK).contains(&axes.len()));
    let axes = axes.ok_or_else(|| reading.unsupported(format!("an image with axes {}", multiscale["axes"])))?;
    let level = |dataset: &Value| {
        let path = dataset["path"].as_str().filter(|path| !path.starts_with(['.', '/']) && !path.contains(".."))?;
        let transformations = dataset["coordinateTransformations"].as_array()?;
        let scale = transformations.iter().find(|of| of["type"] == json!("scale"))?["scale"].as_array()?;
        let scale: Option<Vec<f64>> = scale.iter().rev().map(Value::as_f64).collect();
        Some((path.to_owned(), scale.filter(|scale| scale.len() == axes.len())?))
    };
    let levels: Option<Vec<_>> =
        multiscale["datasets"].as_array().and_then(|levels| levels.iter().map(level).collect());
    let levels = levels.filter(|levels| !levels.is_empty());
    let levels = levels.ok_or_else(|| reading.refused("multiscales has no datasets with path and scale"))?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let along_x = multiscale["axes"].as_array().and_then(|axes| axes.last());
    let numbers: Option<Vec<u64>> =
        node["attributes"][ATTRIBUTE]["steps"].as_array().and_then(|all| all.iter().map(Value::as_u64).collect());
    let numbers = numbers.filter(|numbers| numbers.is_sorted_by(|one, next| one < next));
    Ok(GroupContents::Image(ImageMetadata {
        name: text(&multiscale["name"]).unwrap_or_default(),
        unit: along_x.and_then(|axis| text(&axis["unit"])),
        method: text(&multiscale["type"]),
        axes,
        levels,
        step_numbers: numbers.unwrap_or_default(),
    }))
}

/// Parses the metadata of an array.
///
/// # Errors
/// If the array does not hold numbers in shards that `shard` can read.
pub(crate) fn parse_array(file: &Path, bytes: &[u8]) -> Result<ArrayMetadata, ZarrFault> {
    let reading = MetadataParser { file };
    let node = reading.node(bytes, "array")?;
    super::keys::check(&node).map_err(|reason| reading.refused(reason))?;
    let number = node["data_type"].as_str().and_then(|name| name.parse::<SampleType>().ok());
    let sample = number.filter(|sample| sample.count == 1);
    let sample = sample.ok_or_else(|| reading.unsupported(format!("an array of type {}", node["data_type"])))?;
    let keys = &node["chunk_key_encoding"];
    if keys["name"] != json!("default") || !matches!(keys["configuration"]["separator"].as_str(), None | Some("/")) {
        return Err(reading.unsupported(format!("chunk keys {keys}")));
    }
    if node["chunk_grid"]["name"] != json!("regular") {
        return Err(reading.unsupported(format!("a chunk grid of {}", node["chunk_grid"]["name"])));
    }
    if node["fill_value"].as_f64() != Some(0.0) {
        return Err(reading.unsupported(format!("a fill value of {}", node["fill_value"])));
    }
    let sharding = match node["codecs"].as_array().map(Vec::as_slice) {
        Some([only]) if only["name"] == json!("sharding_indexed") => &only["configuration"],
        _ => {
            return Err(reading
                .unsupported(format!("an array of codecs {}, not of sharding_indexed alone", names(&node["codecs"]))));
        }
    };
    let is_at_end = matches!(sharding["index_location"].as_str(), None | Some("end"));
    if !is_at_end || names(&sharding["index_codecs"]) != "bytes, crc32c" || !is_little(&sharding["index_codecs"]) {
        return Err(reading.unsupported("an index that is not at the end of its shard, little-endian with a CRC-32C"));
    }
    let inner = names(&sharding["codecs"]);
    let (rest, has_checksums) = match inner.strip_suffix(", crc32c") {
        Some(rest) => (rest, true),
        None => (inner.as_str(), false),
    };
    let compression = match rest {
        "bytes" => ChunkCompression::None,
        "bytes, gzip" => ChunkCompression::Gzip,
        "bytes, zstd" => ChunkCompression::Zstd,
        _ => return Err(reading.unsupported(format!("chunks of codecs {inner}"))),
    };
    if !is_little(&sharding["codecs"]) && sample.len_bytes() > 1 {
        return Err(reading.unsupported("big-endian chunks"));
    }
    let counts = reading.counts(&node["shape"], "shape")?;
    let shard = reading.counts(&node["chunk_grid"]["configuration"]["chunk_shape"], "chunk_shape")?;
    let chunk = reading.counts(&sharding["chunk_shape"], "chunk_shape of shards")?;
    let is_whole = shard.len() == counts.len()
        && chunk.len() == counts.len()
        && shard.iter().zip(&chunk).all(|(shard, chunk)| shard.is_multiple_of(*chunk));
    let len_bytes = |of: &[u64]| product(of).and_then(|samples| samples.checked_mul(sample.len_bytes() as u64));
    // A chunk is held in memory; the index of a shard takes 16 bytes per chunk.
    let chunks = product(&shard).unwrap_or(u64::MAX) / product(&chunk).unwrap_or(1).max(1);
    let is_short = len_bytes(&chunk).is_some_and(|len_bytes| len_bytes <= u64::from(u32::MAX) / 2)
        && chunks <= MAX_CHUNKS_PER_SHARD
        && len_bytes(&counts).is_some()
        && counts.iter().zip(&shard).all(|(count, shard)| count.checked_add(*shard).is_some());
    if !is_whole || !is_short {
        return Err(reading.refused(format!("shards of {shard:?} and chunks of {chunk:?}, x first, do not fit")));
    }
    let point = |of: &[u64]| -> Point { std::array::from_fn(|axis| of.get(axis).copied().unwrap_or(1)) };
    let samples_per_plane = product(&chunk).unwrap_or(0);
    let (chunk, shard) = (point(&chunk), point(&shard));
    Ok(ArrayMetadata {
        counts: point(&counts),
        form: ShardForm { sample, chunk, shard, compression, has_checksums, samples_per_plane },
        shards: node["attributes"][ATTRIBUTE]["shards"].as_u64(),
    })
}

/// Maximum number of chunks of a shard. The index of a shard that is read is held in memory.
const MAX_CHUNKS_PER_SHARD: u64 = 1 << 24;

/// Returns the names of codecs.
fn names(codecs: &Value) -> String {
    let codecs = codecs.as_array().map(Vec::as_slice).unwrap_or_default();
    // A codec without configuration may be given by its name alone.
    let name = |codec: &Value| codec["name"].as_str().or(codec.as_str()).unwrap_or("?").to_owned();
    codecs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns whether the codec `bytes`, which comes first, is little-endian.
fn is_little(codecs: &Value) -> bool {
    codecs[0]["configuration"]["endian"] == json!("little")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::zarr::{Downsample, FormOptions};
    use std::path::PathBuf;

    fn form() -> ImageLayout {
        let fields = vec![("v".to_owned(), "float32[3]".parse().unwrap())];
        let options = FormOptions {
            chunk: Some(vec![4, 4, 2]),
            shard: Some(vec![8, 4, 2]),
            levels: Some(2),
            downsample: Downsample::Average,
            spacing: vec![0.5, 1.0, 2.0],
            unit: Some("micrometer".to_owned()),
            steps: Some(7),
            ..FormOptions::default()
        };
        ImageLayout::new(&[9, 6, 3], fields, &options).unwrap()
    }

    fn file() -> PathBuf {
        PathBuf::from("a/zarr.json")
    }

    #[test]
    fn what_is_written_is_read() {
        let form = form();
        let Ok(GroupContents::Image(image)) = parse_group(&file(), image(&form, 0).as_bytes()) else {
            panic!("no image")
        };
        assert_eq!((image.name.as_str(), image.axes.iter().collect::<String>()), ("v", "xyzct".to_owned()));
        assert_eq!(image.levels[1], ("1".to_owned(), vec![1.0, 2.0, 4.0, 1.0, 1.0]));
        assert_eq!((image.unit.as_deref(), image.method.as_deref()), (Some("micrometer"), Some("average")));
        assert!(image.step_numbers.is_empty());
        let numbered = ImageLayout { step_numbers: (0..7).map(|step| 5 + 2 * step).collect(), ..form.clone() };
        let numbers = |text: &str| match parse_group(&file(), text.as_bytes()) {
            Ok(GroupContents::Image(image)) => image.step_numbers,
            _ => panic!("no image"),
        };
        let text = super::image(&numbered, 0);
        assert_eq!(numbers(&text), numbered.step_numbers);
        assert!(numbers(&text.replace("17", "5")).is_empty(), "the numbers do not ascend");
        let array = parse_array(&file(), array(&form, 0, 1, 5, Effort::Balanced).as_bytes()).unwrap();
        assert_eq!((array.counts, array.shards), ([5, 3, 2, 3, 7], Some(5)));
        assert_eq!((array.form.chunk, array.form.shard), ([4, 4, 2, 3, 1], [8, 4, 2, 3, 1]));
        assert_eq!(parse_group(&file(), collection().as_bytes()).unwrap(), GroupContents::Collection);
        let series = parse_group(&file(), series(&form).as_bytes()).unwrap();
        assert_eq!(series, GroupContents::Series(vec!["v".to_owned()]));
    }

    #[test]
    fn a_mean_lies_in_the_middle_of_its_cell() {
        let node: Value = serde_json::from_str(&image(&form(), 0)).unwrap();
        let transformations = &node["attributes"]["ome"]["multiscales"][0]["datasets"][1]["coordinateTransformations"];
        assert_eq!(transformations[1]["translation"], json!([0.0, 0.0, 1.0, 0.5, 0.25]));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        let whole: Value = serde_json::from_str(&array(&form(), 0, 0, 5, Effort::Balanced)).unwrap();
        let changed = |pointer: &str, value: Value| {
            let mut node = whole.clone();
            *node.pointer_mut(pointer).unwrap() = value;
            parse_array(&file(), node.to_string().as_bytes()).unwrap_err().to_string()
        };
        let sharding = "/codecs/0/configuration";
        assert!(changed("/data_type", json!("complex64")).contains("complex64"));
        assert!(changed("/codecs", json!([{ "name": "bytes" }])).contains("sharding_indexed"));
        assert!(changed(&format!("{sharding}/codecs/1"), json!({ "name": "blosc" })).contains("blosc"));
        assert!(changed(&format!("{sharding}/index_location"), json!("start")).contains("index"));
        assert!(changed(&format!("{sharding}/codecs/0/configuration/endian"), json!("big")).contains("big-endian"));
        assert!(changed(&format!("{sharding}/chunk_shape"), json!([1, 3, 2, 4, 3])).contains("do not fit"));
        assert!(changed("/shape", json!([0, 3, 3, 6, 9])).contains("shape"));
        assert!(changed("/shape", json!([u64::MAX, u64::MAX, 3, 6, 9])).contains("do not fit"));
        assert!(changed("/fill_value", json!(1)).contains("fill value"));
        assert!(changed("/zarr_format", json!(2)).contains("format 2"));
        assert!(parse_array(&file(), b"{").is_err() && parse_group(&file(), b"[]").is_err());
        let outside = r#"{"zarr_format":3,"node_type":"group","attributes":{"ome":{"series":["../x"]}}}"#;
        assert!(parse_group(&file(), outside.as_bytes()).is_err());
    }
}
