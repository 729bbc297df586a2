//! Two chunks decoded at once give the same results as one after the other.

use proptest::prelude::*;
use raddle_codec::{DecodeState, Effort, EncodeState, Encoder, EncoderOptions, Pipeline};

const ELEMENT_LEN_BYTES: usize = 4;

fn encoder(shuffle: bool, fletcher32: bool) -> Encoder {
    let compression = Some(Effort::Balanced.into());
    Encoder::new(&EncoderOptions { compression, shuffle, fletcher32, element_len_bytes: ELEMENT_LEN_BYTES })
}

/// Returns numbers of which `new_percent` percent are new; the others are one of 50.
fn column(rows: usize, new_percent: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let numbers = (0..rows).map(|_| match below(100) < new_percent {
        true => below(1 << 32) as u32,
        false => (below(50) as f32 / 7.0).to_bits(),
    });
    numbers.flat_map(u32::to_le_bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn two_are_decoded_as_one_after_the_other(
        (shuffle, fletcher32) in any::<(bool, bool)>(),
        rows in prop::array::uniform2(prop_oneof![3 => 10_000usize..60_000, 1 => 1usize..300]),
        new_percent in prop::array::uniform2(0u64..100),
        seed in any::<u64>(),
        damage in prop::option::of((0usize..2, any::<prop::sample::Index>(), any::<u8>())),
        wrong_len in prop::option::of((0usize..2, any::<bool>())),
    ) {
        let encoder = encoder(shuffle, fletcher32);
        let pipeline = Pipeline::new(&encoder.filters(), ELEMENT_LEN_BYTES).unwrap();
        let raw = [0, 1].map(|at| column(rows[at], new_percent[at], seed ^ at as u64));
        let mut stored = raw.each_ref().map(|raw| {
            let mut stored = Vec::new();
            let mask = encoder.encode(&mut EncodeState::default(), raw, &mut stored).unwrap();
            (mask, stored)
        });
        prop_assume!(stored.iter().all(|(mask, _)| *mask == 0));
        if let Some((which, at, value)) = damage {
            let at = at.index(stored[which].1.len());
            stored[which].1[at] = value;
        }
        let mut lens_bytes = raw.each_ref().map(Vec::len);
        if let Some((which, longer)) = wrong_len {
            lens_bytes[which] = if longer { lens_bytes[which] + 4 } else { lens_bytes[which] - 4 };
        }
        // States that have decoded other chunks before.
        let mut states = [(); 2].map(|()| DecodeState::default());
        for turn in 0..2 {
            let [mut one, mut two] = [(); 2].map(|()| lens_bytes.map(|len_bytes| vec![0xa5; len_bytes]));
            let expected = [0, 1].map(|at| pipeline.decode(&mut states[0], &stored[at].1, 0, &mut one[at]));
            let decoded = pipeline.decode_pair(
                &mut states[1],
                stored.each_ref().map(|(_, stored)| stored.as_slice()),
                two.each_mut().map(Vec::as_mut_slice),
            );
            prop_assert_eq!(&decoded, &expected, "turn {}", turn);
            for at in 0..2 {
                prop_assert!(decoded[at].is_err() || two[at] == one[at]);
            }
            if damage.is_none() && wrong_len.is_none() {
                prop_assert_eq!(&decoded, &[Ok(()), Ok(())]);
                prop_assert!(two == raw);
            }
            stored.swap(0, 1);
            lens_bytes.swap(0, 1);
            if damage.is_none() && wrong_len.is_none() {
                break;
            }
        }
    }
}
