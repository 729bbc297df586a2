//! Files that refer to other files, or to code of other programs.

use super::{Case, Expectation, base, make};
use crate::plain::storage::{Foreign, create_foreign, write_chunk};
use crate::spec::{FilterSpec, Format, ObjectSpec, What};
use std::path::Path;

pub const CASES: &[Case] = &[
    Case { name: "external_absolute", about: "values are those of /etc/passwd", row: 8, make: external_absolute },
    Case { name: "external_parent", about: "values lie in a file above the folder", row: 8, make: external_parent },
    Case {
        name: "external_missing",
        about: "values lie in a file that does not exist",
        row: 8,
        make: external_missing,
    },
    Case { name: "virtual_missing", about: "a virtual dataset without its source", row: 8, make: virtual_missing },
    Case { name: "virtual_absolute", about: "a virtual dataset of a foreign file", row: 8, make: virtual_absolute },
    Case { name: "external_link", about: "a link to an object of another file", row: 8, make: external_link },
    Case { name: "filter_unknown", about: "an unknown filter", row: 8, make: filter_unknown },
];

/// Adds `/foreign` to an ordinary file.
fn with_foreign(path: &Path, foreign: Foreign<'_>) -> Expectation {
    make(path, &base(Format::Earliest, &[FilterSpec::Deflate(6)]));
    create_foreign(path, b"/foreign", 100, foreign).expect("the library writes such datasets");
    Expectation::Refused
}

fn external_absolute(path: &Path) -> Expectation {
    with_foreign(path, Foreign::External(Path::new("/etc/passwd")))
}

fn external_parent(path: &Path) -> Expectation {
    with_foreign(path, Foreign::External(Path::new("../secret.raw")))
}

fn external_missing(path: &Path) -> Expectation {
    with_foreign(path, Foreign::External(Path::new("not_there.raw")))
}

fn virtual_missing(path: &Path) -> Expectation {
    with_foreign(path, Foreign::Virtual(Path::new("not_there.h5")))
}

fn virtual_absolute(path: &Path) -> Expectation {
    // The source exists but lies outside the folder, so the reader must refuse it before opening it.
    with_foreign(path, Foreign::Virtual(Path::new("/etc/passwd")))
}

fn external_link(path: &Path) -> Expectation {
    let mut spec = base(Format::Earliest, &[FilterSpec::Deflate(6)]);
    let link = What::ExternalLink { file: b"/etc/passwd".to_vec(), path: b"/data".to_vec() };
    spec.objects.push(ObjectSpec::link("/elsewhere", link));
    make(path, &spec);
    // The link is kept as text, not followed.
    Expectation::ReadsAs(Box::new(spec.content()))
}

/// A filter number that is not registered and not in the range for tests (256 to 511).
const UNREGISTERED_FILTER: u16 = 32_999;

fn filter_unknown(path: &Path) -> Expectation {
    with_foreign(path, Foreign::UnknownFilter(UNREGISTERED_FILTER));
    write_chunk(path, b"/foreign", &[0], 0, b"who knows what this means").expect("libhdf5 stores any chunk");
    Expectation::Refused
}
