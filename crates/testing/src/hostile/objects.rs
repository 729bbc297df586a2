//! Links, names and hierarchies that are valid but break programs.

use super::{Case, Expectation, base, make};
use crate::plain::numbers;
use crate::plain::storage::nest_groups;
use crate::spec::{DatasetSpec, FileSpec, FilterSpec, Format, ObjectSpec, What};
use std::path::Path;

pub const CASES: &[Case] = &[
    Case { name: "cycle_root", about: "a hard link in a group leads to the root", row: 7, make: cycle_root },
    Case { name: "cycle_self", about: "a group that holds itself", row: 7, make: cycle_self },
    Case { name: "cycle_soft", about: "two soft links lead to each other", row: 7, make: cycle_soft },
    Case { name: "deep", about: "20,000 groups inside each other", row: 7, make: deep },
    Case { name: "wide", about: "50,000 links in one group", row: 7, make: wide },
    Case { name: "wide_v110", about: "50,000 links in one dense group", row: 7, make: wide_v110 },
    Case { name: "names", about: "names with escapes, controls, bad UTF-8, options", row: 9, make: names },
    Case { name: "name_long", about: "a name of 60,000 bytes", row: 9, make: name_long },
];

fn reads_as(path: &Path, spec: &FileSpec) -> Expectation {
    make(path, spec);
    Expectation::ReadsAs(Box::new(spec.content()))
}

fn with_links(path: &Path, links: Vec<ObjectSpec>) -> Expectation {
    let mut spec = base(Format::Earliest, &[FilterSpec::Deflate(6)]);
    spec.objects.extend(links);
    reads_as(path, &spec)
}

fn cycle_root(path: &Path) -> Expectation {
    let up = ObjectSpec::link("/group/up", What::HardLink(b"/".to_vec()));
    with_links(path, vec![ObjectSpec::group("/group"), up])
}

fn cycle_self(path: &Path) -> Expectation {
    let me = ObjectSpec::link("/group/me", What::HardLink(b"/group".to_vec()));
    with_links(path, vec![ObjectSpec::group("/group"), me])
}

fn cycle_soft(path: &Path) -> Expectation {
    let one = ObjectSpec::link("/one", What::SoftLink(b"/other".to_vec()));
    let other = ObjectSpec::link("/other", What::SoftLink(b"/one".to_vec()));
    with_links(path, vec![one, other])
}

/// Depth of nested groups: a reader that keeps every path would need 400 MB for them.
const DEPTH: usize = 20_000;

fn deep(path: &Path) -> Expectation {
    make(path, &base(Format::Earliest, &[]));
    nest_groups(path, DEPTH).expect("groups can be nested");
    Expectation::Cheap
}

const WIDTH: usize = 50_000;

fn wide_in(path: &Path, format: Format) -> Expectation {
    let link = |number| ObjectSpec::link(&format!("/link{number}"), What::SoftLink(b"/data".to_vec()));
    let objects = base(format, &[]).objects.into_iter().chain((0..WIDTH).map(link)).collect();
    reads_as(path, &FileSpec { format, objects, ..FileSpec::default() })
}

fn wide(path: &Path) -> Expectation {
    wide_in(path, Format::Earliest)
}

fn wide_v110(path: &Path) -> Expectation {
    wide_in(path, Format::V110)
}

fn named(name: &[u8], number: u8) -> ObjectSpec {
    let dataset = DatasetSpec::plain(numbers::u8(), &[3], vec![number; 3]).chunked(&[2], &[]);
    let path = [b"/", name].concat();
    ObjectSpec { path, ..dataset.at("") }
}

fn names(path: &Path) -> Expectation {
    let names: [&[u8]; 12] = [
        b"\x1b[31mred\x1b[0m",
        b"line\nbreak",
        b"bad utf-8 \xff\xfe\x80",
        "right \u{202e}to left".as_bytes(),
        b"-rf",
        b"--output",
        b"$(touch pwned)",
        b"`id`;|&",
        b"\"quoted\" 'names' \\",
        b"..",
        b"%s%n",
        "i\u{307} \u{130} \u{131}".as_bytes(),
    ];
    let objects = names.iter().zip(0..).map(|(name, number)| named(name, number)).collect();
    reads_as(path, &FileSpec { objects, ..FileSpec::default() })
}

fn name_long(path: &Path) -> Expectation {
    let objects = vec![named(&b"n".repeat(60_000), 1)];
    reads_as(path, &FileSpec { objects, ..FileSpec::default() })
}
