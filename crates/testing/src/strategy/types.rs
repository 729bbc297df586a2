//! Strategies for datatypes.

use crate::plain::numbers;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use raddle_hdf5::model::{BitRange, ByteOrder, Member, ReferenceKind, TypeClass};
use std::sync::Arc;

/// Generates types whose elements have the same meaning in every file.
pub fn fixed_type() -> BoxedStrategy<TypeClass> {
    let leaf = prop_oneof![
        6 => full_integer(),
        2 => odd_integer(),
        4 => float(),
        1 => time(),
        3 => fixed_string(),
        1 => bitfield(),
        1 => opaque(),
        2 => enumeration(),
    ];
    // Two levels of nesting with few items: larger types would only make tests slower.
    leaf.prop_recursive(2, 8, 3, |inner| prop_oneof![array(inner.clone()), compound(inner)]).boxed()
}

/// Generates types that contain variable-length values or references.
pub fn file_local_type() -> BoxedStrategy<TypeClass> {
    let string =
        (0_u8..3, 0_u8..2).prop_map(|(padding, charset)| TypeClass::VariableString { padding, charset, len_bytes: 16 });
    let leaf = prop_oneof![
        4 => string,
        2 => fixed_type().prop_map(sequence),
        2 => Just(TypeClass::Reference(ReferenceKind::Object)),
        1 => Just(TypeClass::Reference(ReferenceKind::Region)),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let mixed = vec(prop_oneof![inner.clone(), fixed_type()], 1..3);
        let with_local = (mixed, inner.clone()).prop_map(|(mut classes, local)| {
            classes.push(local);
            packed_compound(classes)
        });
        prop_oneof![inner.clone().prop_map(sequence), array(inner), with_local]
    })
    .boxed()
}

fn sequence(base: TypeClass) -> TypeClass {
    TypeClass::Sequence { base: Arc::new(base), len_bytes: 16 }
}

fn byte_order() -> impl Strategy<Value = ByteOrder> {
    select(vec![ByteOrder::Little, ByteOrder::Big])
}

/// Generates integers that use all their bits.
pub fn full_integer() -> impl Strategy<Value = TypeClass> {
    (select(vec![1_u32, 2, 4, 8]), any::<bool>(), byte_order())
        .prop_map(|(len_bytes, signed, order)| numbers::integer(len_bytes, signed, order))
}

/// Generates ranges with at least half of the bits: libhdf5 considers numbers with fewer bits to be damaged.
fn bit_range(len_bytes: u32) -> impl Strategy<Value = BitRange> {
    (len_bytes * 4..=len_bytes * 8)
        .prop_flat_map(move |count| (0..=len_bytes * 8 - count).prop_map(move |offset| BitRange { offset, count }))
}

fn odd_integer() -> impl Strategy<Value = TypeClass> {
    let bits = (1_u32..=8).prop_flat_map(|len_bytes| (Just(len_bytes), bit_range(len_bytes)));
    (bits, any::<bool>(), byte_order(), 0_u8..2, 0_u8..2).prop_map(|((len_bytes, bits), signed, order, low, high)| {
        TypeClass::Integer { len_bytes, order, signed, bits, padding: (low, high) }
    })
}

fn bitfield() -> impl Strategy<Value = TypeClass> {
    let bits = (1_u32..=8).prop_flat_map(|len_bytes| (Just(len_bytes), bit_range(len_bytes)));
    (bits, byte_order()).prop_map(|((len_bytes, bits), order)| TypeClass::Bitfield {
        len_bytes,
        order,
        bits,
        padding: (0, 0),
    })
}

fn float() -> impl Strategy<Value = TypeClass> {
    let brain = byte_order().prop_map(|order| TypeClass::Float {
        len_bytes: 2,
        order,
        bits: BitRange { offset: 0, count: 16 },
        padding: (0, 0, 0),
        normalization: 2,
        sign_bit: 15,
        exponent: BitRange { offset: 7, count: 8 },
        mantissa: BitRange { offset: 0, count: 7 },
        exponent_bias: 127,
    });
    let ieee =
        (select(vec![2_u32, 4, 8]), byte_order()).prop_map(|(len_bytes, order)| numbers::float(len_bytes, order));
    prop_oneof![6 => ieee, 1 => brain]
}

fn time() -> impl Strategy<Value = TypeClass> {
    (select(vec![4_u32, 8]), byte_order()).prop_map(|(len_bytes, order)| TypeClass::Time {
        len_bytes,
        order,
        precision_bits: len_bytes as u16 * 8,
    })
}

fn fixed_string() -> impl Strategy<Value = TypeClass> {
    (1_u32..100, 0_u8..3, 0_u8..2).prop_map(|(len_bytes, padding, charset)| TypeClass::FixedString {
        len_bytes,
        padding,
        charset,
    })
}

fn opaque() -> impl Strategy<Value = TypeClass> {
    (1_u32..20, "[a-z ]{0,12}").prop_map(|(len_bytes, tag)| TypeClass::Opaque { len_bytes, tag: tag.into_bytes() })
}

fn enumeration() -> impl Strategy<Value = TypeClass> {
    (full_integer(), 1_u8..5).prop_map(|(base, count)| {
        let len_bytes = base.len_bytes() as usize;
        // Values differ in every byte order: all bytes of a value are its number.
        let symbols = (0..count).map(|number| (format!("SYMBOL{number}").into_bytes(), vec![number; len_bytes]));
        TypeClass::Enum { symbols: symbols.collect(), base: Arc::new(base) }
    })
}

fn array(item: BoxedStrategy<TypeClass>) -> impl Strategy<Value = TypeClass> {
    (item, vec(1_u32..4, 1..3)).prop_map(|(base, dims)| TypeClass::Array { base: Arc::new(base), dims })
}

/// Generates compounds with gaps before members and at the end.
fn compound(item: BoxedStrategy<TypeClass>) -> impl Strategy<Value = TypeClass> {
    (vec((item, 0_u32..3), 1..4), 0_u32..3).prop_map(|(parts, tail)| {
        let mut end = 0;
        let members = parts.into_iter().enumerate().map(|(number, (class, gap))| {
            let offset_bytes = end + gap;
            end = offset_bytes + class.len_bytes() as u32;
            Member { name: format!("member {number}").into_bytes(), offset_bytes, class: Arc::new(class) }
        });
        let members = members.collect();
        TypeClass::Compound { len_bytes: end + tail, members }
    })
}

fn packed_compound(classes: Vec<TypeClass>) -> TypeClass {
    let mut end = 0;
    let members = classes.into_iter().enumerate().map(|(number, class)| {
        let offset_bytes = end;
        end += class.len_bytes() as u32;
        Member { name: format!("m{number}").into_bytes(), offset_bytes, class: Arc::new(class) }
    });
    let members = members.collect();
    TypeClass::Compound { len_bytes: end, members }
}
