//! Tests every decoder on chunks written by HDF5 and its plug-ins (vectors/make_vectors.py), complete, truncated and
//! damaged.

use proptest::prelude::*;
use raddle_codec::{
    CodecError, DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Filter, KnownFilter, Pipeline,
    decode_arbitrary,
};

/// A chunk with the bytes that HDF5 decodes it to.
#[derive(Debug, Clone)]
struct Vector {
    name: &'static str,
    element_len_bytes: usize,
    filters: Vec<Filter>,
    filter_mask: u32,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

impl Vector {
    fn parse(line: &'static str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[name, element_len_bytes, filters, filter_mask, stored, raw] = &fields[..] else {
            panic!("six fields: {line}");
        };
        let filters = filters.split(';').map(|filter| {
            let parts: Vec<&str> = filter.split(':').collect();
            let numbers = parts[2].split(',').filter(|number| !number.is_empty());
            Filter {
                id: parts[0].parse().unwrap(),
                optional: parts[1] == "1",
                name: vec![],
                parameters: numbers.map(|number| number.parse().unwrap()).collect(),
            }
        });
        Self {
            name,
            element_len_bytes: element_len_bytes.parse().unwrap(),
            filters: filters.collect(),
            filter_mask: filter_mask.parse().unwrap(),
            stored: bytes(stored),
            raw: miniz_oxide::inflate::decompress_to_vec_zlib(&bytes(raw)).unwrap(),
        }
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::new(&self.filters, self.element_len_bytes).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn decode(&self, state: &mut DecodeState, stored: &[u8]) -> Result<Vec<u8>, CodecError> {
        let mut chunk = vec![0xa5; self.raw.len()];
        self.pipeline().decode(state, stored, self.filter_mask, &mut chunk).map(|()| chunk)
    }

    /// Returns whether a checksum of the decoded or stored bytes is available to be verified.
    fn is_checked(&self) -> bool {
        const CHECKED: [u16; 3] = [1, 3, 307];
        self.filter_mask == 0 && self.filters.iter().any(|filter| CHECKED.contains(&filter.id))
    }
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn vectors() -> Vec<Vector> {
    include_str!("vectors/vectors.txt").lines().map(Vector::parse).collect()
}

#[test]
fn all_decode_to_what_hdf5_says() {
    let mut state = DecodeState::default();
    let mut wrong = Vec::new();
    let mut filters_seen = std::collections::BTreeSet::new();
    for vector in vectors() {
        filters_seen.extend(vector.filters.iter().map(|filter| filter.id));
        match vector.decode(&mut state, &vector.stored) {
            Ok(chunk) if chunk == vector.raw => {}
            Ok(chunk) => {
                let first = chunk.iter().zip(&vector.raw).position(|(a, b)| a != b);
                wrong.push(format!("{}: differs at {first:?}", vector.name));
            }
            Err(error) => wrong.push(format!("{}: {error}", vector.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(Vec::from_iter(filters_seen), [1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32015]);
}

#[test]
fn another_declared_length_is_refused() {
    let mut state = DecodeState::default();
    for vector in vectors() {
        for other in [vector.raw.len() - 1, vector.raw.len() + 1, 0, 2 * vector.raw.len() + 9000] {
            let mut chunk = vec![0; other];
            let result = vector.pipeline().decode(&mut state, &vector.stored, vector.filter_mask, &mut chunk);
            assert!(result.is_err(), "{} decodes to {other} bytes", vector.name);
        }
    }
}

/// For a caller that decodes filters one by one without a declared length, as libhdf5 does.
#[test]
fn single_filters_decode_into_whatever_room_there_is() {
    let mut state = DecodeState::default();
    for vector in vectors().iter().filter(|vector| vector.filters.len() == 1 && vector.filter_mask == 0) {
        let pipeline = vector.pipeline();
        let len_bytes = vector.raw.len();
        for room in [len_bytes, len_bytes + 1, 2 * len_bytes + 9000] {
            let mut out = vec![0xa5; room];
            // Nbit and scaleoffset know the number of elements.
            match pipeline.decode_at_most(&mut state, &vector.stored, &mut out) {
                Ok(written) => assert_eq!(&out[..written], vector.raw, "{} in {room} bytes", vector.name),
                Err(error) => {
                    assert!(room > len_bytes && [5, 6].contains(&vector.filters[0].id), "{}: {error}", vector.name);
                }
            }
        }
        for room in [0, len_bytes / 2, len_bytes - 1] {
            let refused = pipeline.decode_at_most(&mut state, &vector.stored, &mut vec![0; room]);
            assert!(refused.is_err(), "{} in {room} bytes", vector.name);
            if vector.filters[0].id >= 256 || vector.filters[0].id == 4 {
                assert!(matches!(refused, Err(CodecError::TooLong { .. })), "{}: {refused:?}", vector.name);
            }
        }
    }
}

#[test]
fn what_is_cut_is_refused_or_was_padding() {
    let mut state = DecodeState::default();
    for vector in vectors() {
        // Every length of short chunks, and a sample of the lengths of others.
        let step = vector.stored.len() / 300 + 1;
        for len in (0..vector.stored.len()).step_by(step) {
            if let Ok(chunk) = vector.decode(&mut state, &vector.stored[..len]) {
                assert_eq!(chunk, vector.raw, "{} cut to {len} bytes", vector.name);
                assert!(vector.stored.len() - len <= 8, "{} does without its last bytes from {len} on", vector.name);
            }
        }
    }
}

#[test]
fn flipped_bits_are_refused_where_a_checksum_is() {
    let mut state = DecodeState::default();
    for vector in vectors() {
        let step = vector.stored.len() * 8 / 600 + 1;
        for bit in (0..vector.stored.len() * 8).step_by(step) {
            let mut stored = vector.stored.clone();
            stored[bit / 8] ^= 1 << (bit % 8);
            let result = vector.decode(&mut state, &stored);
            if let Ok(chunk) = result
                && vector.is_checked()
            {
                assert_eq!(chunk, vector.raw, "{} with bit {bit} flipped", vector.name);
            }
        }
    }
}

#[test]
fn masked_filters_are_left_out() {
    let mut state = DecodeState::default();
    for vector in vectors() {
        let mut chunk = vec![0; vector.raw.len()];
        vector.pipeline().decode(&mut state, &vector.raw, u32::MAX, &mut chunk).unwrap();
        assert_eq!(chunk, vector.raw);
    }
}

#[test]
fn bombs_cost_no_more_than_the_cap() {
    // Deflated twice: 64 MiB of zeros, in about 64 KiB, in about 200 bytes; the chunk is declared to hold 1000 bytes.
    let once = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; 64 << 20], 6);
    let twice = miniz_oxide::deflate::compress_to_vec_zlib(&once, 6);
    let deflate = Filter { id: 1, optional: true, name: vec![], parameters: vec![6] };
    let pipeline = Pipeline::new(&[deflate.clone(), deflate], 1).unwrap();
    let mut chunk = vec![0; 1000];
    let error = pipeline.decode(&mut DecodeState::default(), &twice, 0, &mut chunk).unwrap_err();
    assert!(matches!(error, CodecError::TooLong { limit_len_bytes, .. } if limit_len_bytes < 6000), "{error}");
}

#[test]
fn unknown_filters_are_named() {
    let filter = |id, name: &[u8]| Filter { id, optional: true, name: name.to_vec(), parameters: vec![] };
    let message = |filter| Pipeline::new(&[filter], 4).unwrap_err().to_string();
    assert_eq!(message(filter(32013, b"")), "filter 32013 (zfp) is not supported by raddle");
    assert_eq!(message(filter(405, b"my\x07filter")), "filter 405 (my\\u{7}filter) is not supported by raddle");
    let many = vec![filter(3, b""); 33];
    assert!(matches!(Pipeline::new(&many, 4), Err(CodecError::TooManyFilters { count: 33, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(prop_oneof![Just(0u8), 0u8..20, any::<u8>()], 0..300)) {
        decode_arbitrary(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn damaged_vectors_do_not_panic(
        pick in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        parameter in proptest::option::of((any::<prop::sample::Index>(), prop_oneof![0u32..70, any::<u32>()])),
        len_bytes in proptest::option::of(0usize..3000),
    ) {
        thread_local! { static VECTORS: Vec<Vector> = vectors(); }
        let mut vector = VECTORS.with(|vectors| vectors[pick.index(vectors.len())].clone());
        for (place, byte) in edits {
            let place = place.index(vector.stored.len());
            vector.stored[place] = byte;
        }
        if let Some((place, value)) = parameter
            && !vector.filters[0].parameters.is_empty()
        {
            let place = place.index(vector.filters[0].parameters.len());
            vector.filters[0].parameters[place] = value;
        }
        let mut chunk = vec![0; len_bytes.unwrap_or(vector.raw.len())];
        if let Ok(pipeline) = Pipeline::new(&vector.filters, vector.element_len_bytes) {
            let _ = pipeline.decode(&mut DecodeState::default(), &vector.stored, vector.filter_mask, &mut chunk);
        }
    }
}

#[test]
fn few_bytes_cannot_fill_a_long_chunk() {
    let filter = |filter: KnownFilter, parameters: &[u32]| Filter {
        id: filter.id(),
        optional: false,
        name: Vec::new(),
        parameters: parameters.to_vec(),
    };
    let (shuffle, deflate) = (filter(KnownFilter::Shuffle, &[4]), filter(KnownFilter::Deflate, &[6]));
    let pipeline = Pipeline::new(&[shuffle, deflate, filter(KnownFilter::Fletcher32, &[])], 4).unwrap();
    let raw = vec![0; 1 << 24];
    let options = EncoderOptions {
        compression: Some(Effort::Small.into()),
        shuffle: true,
        fletcher32: true,
        element_len_bytes: 4,
    };
    let mut stored = Vec::new();
    Encoder::new(&options).encode(&mut EncodeState::default(), &raw, &mut stored).unwrap();
    assert_eq!(pipeline.check_stored(stored.len(), 0, raw.len()), Ok(()), "{} bytes fill it", stored.len());
    let refused = pipeline.check_stored(stored.len() / 2, 0, raw.len());
    assert_eq!(refused, Err(CodecError::Truncated { filter: KnownFilter::Deflate }));
    // If deflate was not applied, decoding finds out.
    assert_eq!(pipeline.check_stored(10, 0b010, raw.len()), Ok(()));
    let zstd = Pipeline::new(&[filter(KnownFilter::Zstd, &[])], 4).unwrap();
    assert_eq!(zstd.check_stored(20, 0, raw.len()), Ok(()));
}
