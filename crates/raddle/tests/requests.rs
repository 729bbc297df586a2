//! Requests as plain data: what they refuse, and what survives JSON.

use raddle::options::{Chunk, LayoutOptions, PlacementOptions, SchemaOptions};
use raddle::{Context, MergeRequest};
use raddle_merge::Link;
use raddle_merge::schema::join::Join;
use raddle_testing::plain::make_columns;
use serde_json::json;
use std::path::Path;

fn request(folder: &Path) -> MergeRequest {
    let inputs = ["a.h5", "b.h5"].map(|name| folder.join(name));
    inputs.iter().for_each(|path| make_columns(path, &[("/rec/energy", &[1.0, 2.0])]).unwrap());
    MergeRequest::new(inputs, folder.join("all.h5"))
}

fn refused(request: &MergeRequest) -> String {
    let error = request.plan(&Context::default()).unwrap_err();
    assert_eq!(error.kind(), "usage", "{error}");
    error.to_string()
}

#[test]
fn contradictions_are_refused_before_anything_is_read() {
    let missing = MergeRequest::new(["none.h5"], "all.h5");
    let union = PlacementOptions { union: true, ..Default::default() };
    let schema = SchemaOptions { join: Some(Join::Inner), ..Default::default() };
    let error = refused(&MergeRequest { placing: union.clone(), schema, ..missing.clone() });
    assert_eq!(error, "--union copies datasets as they are: leave out --join");
    let layout = LayoutOptions { chunk: Some(Chunk::Rows(10)), ..Default::default() };
    assert!(
        refused(&MergeRequest { placing: union.clone(), layout, ..missing.clone() }).ends_with("leave out --chunk")
    );
    let keys = vec!["/rec/evt".to_owned()];
    assert!(refused(&MergeRequest { placing: union, keys, ..missing.clone() }).ends_with("leave out --keys"));
    let link = PlacementOptions { link: Some(Link::Virtual), ..Default::default() };
    let layout = LayoutOptions { layout_rules: vec!["x: contiguous".parse().unwrap()], ..Default::default() };
    let error = refused(&MergeRequest { placing: link, layout, ..missing.clone() });
    assert_eq!(error, "--link virtual links to datasets as they are: leave out --layout");
    let mut samples = missing.clone();
    samples.preview.preview_samples = Some(2000);
    assert_eq!(refused(&samples), "--preview-samples is for --preview");
    let mut unordered = missing;
    unordered.part = Some("1/2".parse().unwrap());
    unordered.output.writing.unordered = true;
    assert!(refused(&unordered).contains("leave out --unordered"));
}

#[test]
fn a_part_is_not_written_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let request = MergeRequest { part: Some("1/2".parse().unwrap()), ..request(folder.path()) };
    let context = Context::default();
    assert_eq!(request.plan(&context).unwrap().run(&context).unwrap_err().kind(), "usage");
    assert!(!folder.path().join("all.h5").exists());
    let written = request.plan(&context).unwrap().run_part(&context).unwrap().unwrap();
    assert_eq!(written.missing, [2]);
}

#[test]
fn options_are_read_from_json_and_written_to_it() {
    let options = json!({
        "join": "outer", "chunk": "128x16", "compress": "zstd:7", "contiguous": "4KiB", "extendible": true,
        "keys": "/rec/run,/rec/evt", "add_column": "run=@run", "part": "2/8", "preview": true, "memory": "64MiB",
        "align": "4MiB", "key_datasets": ["seq", "offsets"], "compat": "1.10", "strange": null,
    });
    let mut request: MergeRequest = serde_json::from_value(options).unwrap();
    assert_eq!(request.schema.join, Some(Join::Outer));
    assert_eq!(request.keys, ["/rec/run", "/rec/evt"]);
    assert_eq!(request.execution.memory.map(|size| size.0), Some(64 << 20));
    assert_eq!(request.preview.preview, Some(None));
    request.inputs = ["a.h5"].into();
    let text = serde_json::to_string(&request).unwrap();
    let again: MergeRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert!(again.inputs.inputs.is_empty(), "paths of inputs are arguments");
    for wrong in [json!({"join": "all"}), json!({"chunk": "5"}), json!({"part": "3/2"}), json!({"memory": 0})] {
        assert!(serde_json::from_value::<MergeRequest>(wrong.clone()).is_err(), "{wrong}");
    }
}
