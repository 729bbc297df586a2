//! Values as a grey picture, in PNG.
//!
//! Source: Portable Network Graphics, third edition (W3C 2025).

use raddle_codec::{CodecError, Effort, EncodeState, Encoder};

/// Values that are drawn as black and as white.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Value drawn as black, as are all lower values.
    pub low: f64,
    /// Value drawn as white, as are all higher values.
    pub high: f64,
}

/// Values in rows, the first row at the top.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Number of values per row.
    pub width: u64,
    /// Number of rows.
    pub height: u64,
    /// Values; NaN is black.
    pub values: Vec<f64>,
}

impl Picture {
    /// Encodes a PNG file with 8 bits of grey; the default range is the range of the values.
    ///
    /// # Errors
    /// If compression fails.
    pub fn to_png(&self, range: Option<Range>) -> Result<Vec<u8>, CodecError> {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let Range { low, high } = range.unwrap_or_else(|| Range {
            low: finite().fold(f64::INFINITY, f64::min),
            high: finite().fold(f64::NEG_INFINITY, f64::max),
        });
        let scale = if high > low { 255.0 / (high - low) } else { 0.0 };
        // Conversion to an integer saturates and turns NaN into 0.
        let grey = |value: &f64| ((value - low) * scale).round() as u8;
        let mut rows = Vec::new();
        for row in self.values.chunks((self.width as usize).max(1)) {
            rows.push(0); // no filter
            rows.extend(row.iter().map(grey));
        }
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        let side = |side: u64| u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
        // Eight bits, grey, and the only methods of compression, filters and interlacing.
        chunk(&mut png, b"IHDR", &[&side(self.width)[..], &side(self.height), &[8, 0, 0, 0, 0]].concat());
        chunk(&mut png, b"IDAT", &zlib(&rows)?);
        chunk(&mut png, b"IEND", &[]);
        Ok(png)
    }
}

/// Encodes a zlib stream.
fn zlib(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut stream = Vec::new();
    let mask = Encoder::plain(Effort::Gzip(6), 1).encode(&mut EncodeState::default(), bytes, &mut stream)?;
    if mask == 0 {
        return Ok(stream);
    }
    // Data that deflate does not shrink is stored in raw blocks of at most 65,535 bytes.
    let mut stream = vec![0x78, 0x01];
    let blocks = bytes.chunks(usize::from(u16::MAX));
    let last = blocks.len();
    for (number, block) in (1..).zip(blocks) {
        let len = block.len() as u16;
        stream.push(u8::from(number == last));
        stream.extend(len.to_le_bytes());
        stream.extend((!len).to_le_bytes());
        stream.extend(block);
    }
    let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    stream.extend((high << 16 | low).to_be_bytes());
    Ok(stream)
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let start = png.len();
    png.extend(kind);
    png.extend(data);
    let sum = crc32(&png[start..]);
    png.extend(sum.to_be_bytes());
}

/// Computes the CRC-32 of ISO 3309, as in zip and PNG.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_four_values() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let picture = Picture { width: 2, height: 2, values: vec![0.0, 1.0, f64::NAN, 4.0] };
        let png = picture.to_png(None).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..26], [0, 0, 0, 2, 0, 0, 0, 2, 8, 0]);
        // Six bytes do not get shorter, so they are in a stored block.
        let rows = [0, 0, 64, 0, 0, 255];
        assert!(png.windows(6).any(|bytes| bytes == rows), "{png:02x?}");
        let narrow = picture.to_png(Some(Range { low: 1.0, high: 2.0 })).unwrap();
        assert!(narrow.windows(6).any(|bytes| bytes == [0, 0, 0, 0, 0, 255]));
    }

    #[test]
    fn equal_values_are_black() {
        let picture = Picture { width: 300, height: 200, values: vec![3.0; 60_000] };
        assert!(picture.to_png(None).unwrap().len() < 1000);
    }
}
