//! Arguments of the command line that raddle parses itself.

use raddle::options::{Chunk, LayoutRule};
use raddle_core::size::Size;
use raddle_merge::options::Compress;

/// Runs the target whose input is an option's value.
pub(crate) fn arguments(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(Size(len_bytes)) = text.parse::<Size>() {
        assert_eq!(len_bytes.to_string().parse(), Ok(Size(len_bytes)));
    }
    if let Ok(chunk) = text.parse::<Chunk>() {
        assert_eq!(chunk.to_string().parse(), Ok(chunk));
    }
    if let Ok(rule) = text.parse::<LayoutRule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let _ = LayoutRule::parse_file(&text);
    if let Ok(compression) = text.parse::<Compress>() {
        assert_eq!(compression.to_string().parse(), Ok(compression));
    }
}

/// Returns values that are accepted, and some that are not.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let arguments = [
        "512MiB",
        "2GB",
        "1.5GiB",
        "4096",
        " 7 b ",
        ".5kB",
        "99999999999999999999",
        "65536rows",
        "1 row",
        "128x1024",
        "8x8x8",
        "time=365,lat=90",
        "/tas: chunk=time=365,lat=90, filter=zstd:3, shuffle=no",
        "a,b:CHUNK=20x10",
        "UD=32015,0,1,3",
        "[layout]\n\"/tas\" = \"contiguous\"\n",
        "gzip:9",
        "gzip:255",
        "fast",
        "keep",
        "0.1234567890123456789TB",
        "٣MiB",
    ];
    arguments.iter().map(|text| text.as_bytes().to_vec()).collect()
}
