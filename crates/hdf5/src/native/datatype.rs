//! Datatype messages, versions 1 to 5, all classes.
//!
//! Shared (committed) datatypes are followed by `super::object`. Invariants: an accepted type has a size above zero,
//! its significant bits lie within its size, its parts lie within it without overlap, and it nests at most
//! [`MAX_DEPTH`] deep.

use super::cursor::{Cursor, Defect, encoded_len};
use super::dataspace::MAX_RANK;
use crate::model::{BitRange, ByteOrder, Member, ReferenceKind, TypeClass};
use std::sync::Arc;

/// Maximum nesting of datatypes that is decoded. Real types nest three or four deep; the limit bounds the stack.
pub const MAX_DEPTH: usize = 32;

/// Decodes the body of a datatype message (the output of `H5Tencode` without its two leading bytes).
///
/// Addresses in defects are relative to the start of `message`.
pub fn decode(message: &[u8]) -> Result<TypeClass, Defect> {
    parse(&mut Cursor::new(message, 0, "datatype"))
}

/// Decodes one datatype and advances the cursor past it.
pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<TypeClass, Defect> {
    parse_nested(cursor, 0)
}

/// Fields common to all datatypes.
struct Head {
    version: u8,
    bits: u32,
    len_bytes: u32,
}

impl Head {
    fn bit(&self, number: u32) -> u8 {
        (self.bits >> number & 1) as u8
    }

    fn order(&self) -> ByteOrder {
        if self.bit(0) == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }

    /// Returns the low half of the class bits: a count or a length.
    fn count(&self) -> usize {
        (self.bits & 0xffff) as usize
    }
}

fn parse_nested(cursor: &mut Cursor<'_>, depth: usize) -> Result<TypeClass, Defect> {
    if depth > MAX_DEPTH {
        return Err(cursor.unsupported(format!("nested more than {MAX_DEPTH} deep")));
    }
    let start = cursor.clone();
    let class_and_version = cursor.u8()?;
    let bits = cursor.uint(3)? as u32;
    let head = Head { version: class_and_version >> 4, bits, len_bytes: cursor.u32()? };
    if !(1..=5).contains(&head.version) {
        return Err(start.unsupported(format!("version {}", head.version)));
    }
    if head.len_bytes == 0 {
        return Err(start.malformed("size 0"));
    }
    let Head { len_bytes, .. } = head;
    match class_and_version & 0x0f {
        0 => {
            let bits = bit_range(cursor, len_bytes)?;
            let signed = head.bit(3) == 1;
            let padding = (head.bit(1), head.bit(2));
            Ok(TypeClass::Integer { len_bytes, order: head.order(), signed, bits, padding })
        }
        1 => parse_float(cursor, &head, &start),
        2 => Ok(TypeClass::Time { len_bytes, order: head.order(), precision_bits: cursor.u16()? }),
        3 => Ok(TypeClass::FixedString { len_bytes, padding: nibble(head.bits, 0), charset: nibble(head.bits, 4) }),
        4 => {
            let bits = bit_range(cursor, len_bytes)?;
            Ok(TypeClass::Bitfield { len_bytes, order: head.order(), bits, padding: (head.bit(1), head.bit(2)) })
        }
        5 => {
            let tag = cursor.take((head.bits & 0xff) as usize)?;
            let tag_len = tag.iter().position(|&byte| byte == 0).unwrap_or(tag.len());
            Ok(TypeClass::Opaque { len_bytes, tag: tag[..tag_len].to_vec() })
        }
        6 => parse_compound(cursor, &head, depth),
        7 => parse_reference(&head, &start),
        8 => parse_enum(cursor, &head, depth),
        9 => {
            let base = parse_nested(cursor, depth + 1)?;
            match nibble(head.bits, 0) {
                0 => Ok(TypeClass::Sequence { base: Arc::new(base), len_bytes }),
                1 => {
                    let (padding, charset) = (nibble(head.bits, 4), nibble(head.bits, 8));
                    Ok(TypeClass::VariableString { padding, charset, len_bytes })
                }
                kind => Err(start.malformed(format!("variable-length kind {kind}"))),
            }
        }
        10 => parse_array(cursor, &head, &start, depth),
        11 => {
            // Bit 0: both parts have one type; bits 1 and 2: 0 for real and imaginary part.
            if head.bits != 1 {
                return Err(start.unsupported(format!("complex number of form {:#x}", head.bits)));
            }
            let base = parse_nested(cursor, depth + 1)?;
            if base.len_bytes().checked_mul(2) != Some(u64::from(len_bytes)) {
                return Err(
                    start.malformed(format!("complex number of {len_bytes} bytes with parts of a different size"))
                );
            }
            Ok(TypeClass::Complex { base: Arc::new(base), len_bytes })
        }
        class => Err(start.unsupported(format!("class {class}"))),
    }
}

fn nibble(bits: u32, at: u32) -> u8 {
    (bits >> at & 0x0f) as u8
}

/// Returns whether a range of at least one bit lies in `len_bytes` bytes.
fn lies_in(range: BitRange, len_bytes: u32) -> bool {
    range.count > 0 && u64::from(range.offset) + u64::from(range.count) <= 8 * u64::from(len_bytes)
}

fn bit_range(cursor: &mut Cursor<'_>, len_bytes: u32) -> Result<BitRange, Defect> {
    let range = BitRange { offset: cursor.u16()?.into(), count: cursor.u16()?.into() };
    if !lies_in(range, len_bytes) {
        return Err(cursor.malformed(format!("{} bits from bit {} in {len_bytes} bytes", range.count, range.offset)));
    }
    Ok(range)
}

fn parse_float(cursor: &mut Cursor<'_>, head: &Head, start: &Cursor<'_>) -> Result<TypeClass, Defect> {
    // Bit 6 was reserved before version 3, and libhdf5 ignores it there.
    let mixed = if head.version < 3 { 0 } else { head.bit(6) };
    let order = match (mixed, head.bit(0)) {
        (0, 0) => ByteOrder::Little,
        (0, _) => ByteOrder::Big,
        (_, 1) => ByteOrder::Vax,
        _ => return Err(start.malformed("byte order 2")),
    };
    let normalization = (head.bits >> 4 & 3) as u8;
    if normalization == 3 {
        return Err(start.unsupported("mantissa normalisation 3"));
    }
    let bits = bit_range(cursor, head.len_bytes)?;
    let exponent = BitRange { offset: cursor.u8()?.into(), count: cursor.u8()?.into() };
    let mantissa = BitRange { offset: cursor.u8()?.into(), count: cursor.u8()?.into() };
    let sign = BitRange { offset: head.bits >> 8 & 0xff, count: 1 };
    for (name, range) in [("sign", sign), ("exponent", exponent), ("mantissa", mantissa)] {
        if !lies_in(range, head.len_bytes) {
            return Err(start.malformed(format!("{name} of {} bits from bit {}", range.count, range.offset)));
        }
    }
    let overlap = |a: BitRange, b: BitRange| a.offset < b.offset + b.count && b.offset < a.offset + a.count;
    if overlap(sign, exponent) || overlap(sign, mantissa) || overlap(exponent, mantissa) {
        return Err(start.malformed("sign, exponent and mantissa overlap"));
    }
    Ok(TypeClass::Float {
        len_bytes: head.len_bytes,
        order,
        bits,
        padding: (head.bit(1), head.bit(2), head.bit(3)),
        normalization,
        sign_bit: sign.offset,
        exponent,
        mantissa,
        exponent_bias: cursor.u32()?,
    })
}

/// Reads a name, which in versions 1 and 2 is padded with its zero to a multiple of 8 bytes.
fn name<'b>(cursor: &mut Cursor<'b>, version: u8) -> Result<&'b [u8], Defect> {
    let name = cursor.zero_terminated()?;
    if version < 3 {
        cursor.skip((name.len() + 1).next_multiple_of(8) - (name.len() + 1))?;
    }
    Ok(name)
}

/// Checks that no two of `names` are equal.
fn check_distinct<'n>(names: impl Iterator<Item = &'n [u8]>, start: &Cursor<'_>) -> Result<(), Defect> {
    let mut sorted: Vec<_> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(start.malformed(format!("duplicate name `{}`", pair[0].escape_ascii()))),
        None => Ok(()),
    }
}

fn parse_compound(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<TypeClass, Defect> {
    let start = cursor.clone();
    let mut members = Vec::new();
    for _ in 0..head.count() {
        members.push(parse_member(cursor, head, depth)?);
    }
    if members.is_empty() {
        return Err(start.malformed("compound without members"));
    }
    check_distinct(members.iter().map(|member: &Member| member.name.as_slice()), &start)?;
    let mut parts: Vec<_> =
        members.iter().map(|member| (u64::from(member.offset_bytes), member.class.len_bytes())).collect();
    parts.sort_unstable();
    let mut free_from = 0;
    for (offset, len) in parts {
        let end = offset.saturating_add(len);
        if offset < free_from || end > u64::from(head.len_bytes) {
            return Err(start.malformed(format!(
                "a member at byte {offset} overlaps another one or exceeds the compound's {} bytes",
                head.len_bytes
            )));
        }
        free_from = end;
    }
    Ok(TypeClass::Compound { len_bytes: head.len_bytes, members })
}

fn parse_member(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<Member, Defect> {
    let name = name(cursor, head.version)?.to_vec();
    let offset_len = if head.version < 3 { 4 } else { encoded_len(head.len_bytes.into()) };
    let offset_bytes = cursor.uint(offset_len)? as u32;
    if head.version > 1 {
        let class = Arc::new(parse_nested(cursor, depth + 1)?);
        return Ok(Member { name, offset_bytes, class });
    }
    // Version 1 has arrays only as members: rank, 3 reserved bytes, a permutation that was never used, 4 reserved
    // bytes, and four sizes.
    let rank = usize::from(cursor.u8()?);
    if rank > 4 {
        return Err(cursor.malformed(format!("member array of rank {rank}")));
    }
    cursor.skip(3 + 4 + 4)?;
    let mut dims = Vec::new();
    for number in 0..4 {
        let dim = cursor.u32()?;
        if number < rank {
            dims.push(dim);
        }
    }
    let start = cursor.clone();
    let base = Arc::new(parse_nested(cursor, depth + 1)?);
    if rank == 0 {
        return Ok(Member { name, offset_bytes, class: base });
    }
    check_array(base.len_bytes(), &dims, None, &start)?;
    Ok(Member { name, offset_bytes, class: Arc::new(TypeClass::Array { base, dims }) })
}

fn parse_reference(head: &Head, start: &Cursor<'_>) -> Result<TypeClass, Defect> {
    match (nibble(head.bits, 0), head.len_bytes) {
        (0, 8) => Ok(TypeClass::Reference(ReferenceKind::Object)),
        (1, 12) => Ok(TypeClass::Reference(ReferenceKind::Region)),
        // References have the size of the file's addresses; only those of 8 bytes are supported.
        (0 | 1, len_bytes) => Err(start.unsupported(format!("reference of {len_bytes} bytes"))),
        (kind @ 2..=4, len_bytes) => Ok(TypeClass::Reference(ReferenceKind::Revised { kind, len_bytes })),
        (kind, _) => Err(start.malformed(format!("reference kind {kind}"))),
    }
}

fn parse_enum(cursor: &mut Cursor<'_>, head: &Head, depth: usize) -> Result<TypeClass, Defect> {
    let start = cursor.clone();
    let base = parse_nested(cursor, depth + 1)?;
    if !matches!(base, TypeClass::Integer { .. }) || base.len_bytes() != u64::from(head.len_bytes) {
        return Err(start.malformed(format!("enumeration of {} bytes whose base type does not match", head.len_bytes)));
    }
    let mut names = Vec::new();
    for _ in 0..head.count() {
        names.push(name(cursor, head.version)?);
    }
    if names.iter().any(|name| name.is_empty()) {
        return Err(start.malformed("enumeration symbol without a name"));
    }
    check_distinct(names.iter().copied(), &start)?;
    let mut symbols = Vec::new();
    for name in names {
        symbols.push((name.to_vec(), cursor.take(head.len_bytes as usize)?.to_vec()));
    }
    Ok(TypeClass::Enum { base: Arc::new(base), symbols })
}

fn parse_array(cursor: &mut Cursor<'_>, head: &Head, start: &Cursor<'_>, depth: usize) -> Result<TypeClass, Defect> {
    let rank = usize::from(cursor.u8()?);
    if rank == 0 || rank > MAX_RANK {
        return Err(start.malformed(format!("array of rank {rank}")));
    }
    if head.version < 3 {
        cursor.skip(3)?;
    }
    let dims = (0..rank).map(|_| cursor.u32()).collect::<Result<Vec<_>, _>>()?;
    if head.version < 3 {
        // A permutation that was never used.
        cursor.skip(4 * rank)?;
    }
    let base = Arc::new(parse_nested(cursor, depth + 1)?);
    check_array(base.len_bytes(), &dims, Some(head.len_bytes), start)?;
    Ok(TypeClass::Array { base, dims })
}

/// Checks that an array of `dims` items fits the 32-bit size of a type, and has the stored size.
fn check_array(item_len: u64, dims: &[u32], stored_len: Option<u32>, start: &Cursor<'_>) -> Result<(), Defect> {
    let len = dims.iter().try_fold(item_len, |len, &dim| len.checked_mul(dim.into()).filter(|&len| len > 0));
    match len {
        Some(len) if stored_len.map_or(len <= u64::from(u32::MAX), |stored| u64::from(stored) == len) => Ok(()),
        _ => Err(start.malformed(format!("array of shape {dims:?} with items of {item_len} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::damage::{check, le};
    use super::*;

    const I32: [(u64, usize); 5] = [(0x10, 1), (0x08, 3), (4, 4), (0, 2), (32, 2)];

    fn i32_class() -> TypeClass {
        TypeClass::Integer {
            len_bytes: 4,
            order: ByteOrder::Little,
            signed: true,
            bits: BitRange { offset: 0, count: 32 },
            padding: (0, 0),
        }
    }

    fn decoded(bytes: &[u8]) -> TypeClass {
        check(bytes, |mut cursor| parse(&mut cursor))
    }

    /// Creates a head of the given version and class, followed by more bytes.
    fn message(version_and_class: u64, bits: u64, len_bytes: u64, more: &[&[u8]]) -> Vec<u8> {
        [le(&[(version_and_class, 1), (bits, 3), (len_bytes, 4)]), more.concat()].concat()
    }

    #[test]
    fn mixed_byte_order_counts_from_version_3_on() {
        let order = |version: u64, bits: u64| {
            let fields = [(0, 2), (32, 2), (23, 1), (8, 1), (0, 1), (23, 1), (0x81, 4)];
            let bytes = message(version << 4 | 1, 0x1f20 | bits, 4, &[&le(&fields)]);
            match decode(&bytes) {
                Ok(TypeClass::Float { order, .. }) => Some(order),
                _ => None,
            }
        };
        for version in [1, 2] {
            assert_eq!(order(version, 0x41), Some(ByteOrder::Big));
            assert_eq!(order(version, 0x40), Some(ByteOrder::Little));
        }
        for version in [3, 4, 5] {
            assert_eq!(order(version, 0x41), Some(ByteOrder::Vax));
            assert_eq!(order(version, 0x01), Some(ByteOrder::Big));
            assert_eq!(order(version, 0x40), None);
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(decoded(&le(&I32)), i32_class());
        let odd = decoded(&le(&[(0x10, 1), (0x07, 3), (8, 4), (5, 2), (17, 2)]));
        let expected = TypeClass::Integer {
            len_bytes: 8,
            order: ByteOrder::Big,
            signed: false,
            bits: BitRange { offset: 5, count: 17 },
            padding: (1, 1),
        };
        assert_eq!(odd, expected);
        let float = le(&[(0x11, 1), (0x1f21, 3), (4, 4), (0, 2), (32, 2), (23, 1), (8, 1), (0, 1), (23, 1), (127, 4)]);
        let expected = TypeClass::Float {
            len_bytes: 4,
            order: ByteOrder::Big,
            bits: BitRange { offset: 0, count: 32 },
            padding: (0, 0, 0),
            normalization: 2,
            sign_bit: 31,
            exponent: BitRange { offset: 23, count: 8 },
            mantissa: BitRange { offset: 0, count: 23 },
            exponent_bias: 127,
        };
        assert_eq!(decoded(&float), expected);
        let bitfield = decoded(&le(&[(0x14, 1), (0, 3), (2, 4), (0, 2), (16, 2)]));
        assert!(matches!(bitfield, TypeClass::Bitfield { len_bytes: 2, bits: BitRange { offset: 0, count: 16 }, .. }));
        let time = decoded(&le(&[(0x12, 1), (1, 3), (4, 4), (32, 2)]));
        assert_eq!(time, TypeClass::Time { len_bytes: 4, order: ByteOrder::Big, precision_bits: 32 });
    }

    #[test]
    fn strings_and_opaque_bytes() {
        assert_eq!(
            decoded(&message(0x13, 0x12, 9, &[])),
            TypeClass::FixedString { len_bytes: 9, padding: 2, charset: 1 }
        );
        assert_eq!(
            decoded(&message(0x15, 8, 3, &[b"tag\0\0\0\0\0"])),
            TypeClass::Opaque { len_bytes: 3, tag: b"tag".to_vec() }
        );
        let character = message(0x13, 0, 1, &[]);
        assert_eq!(
            decoded(&message(0x19, 0x111, 16, &[&character])),
            TypeClass::VariableString { padding: 1, charset: 1, len_bytes: 16 }
        );
        assert_eq!(
            decoded(&message(0x19, 0, 16, &[&le(&I32)])),
            TypeClass::Sequence { base: Arc::new(i32_class()), len_bytes: 16 }
        );
    }

    #[test]
    fn compound_of_version_1_has_member_arrays() {
        let array = le(&[(2, 1), (0, 3), (0, 4), (0, 4), (2, 4), (3, 4), (0, 4), (0, 4)]);
        let scalar = le(&[(0, 1), (0, 3), (0, 4), (0, 4), (0, 16)]);
        let parts: [&[u8]; 8] =
            // The second name has 8 bytes plus its zero: padded to 16.
            [b"a\0------", &[0; 4], &scalar, &le(&I32), b"eightbyt\0-------", &[4, 0, 0, 0], &array, &le(&I32)];
        let expected = TypeClass::Compound {
            len_bytes: 28,
            members: vec![
                Member { name: b"a".to_vec(), offset_bytes: 0, class: Arc::new(i32_class()) },
                Member {
                    name: b"eightbyt".to_vec(),
                    offset_bytes: 4,
                    class: Arc::new(TypeClass::Array { base: Arc::new(i32_class()), dims: vec![2, 3] }),
                },
            ],
        };
        assert_eq!(decoded(&message(0x16, 2, 28, &parts)), expected);
    }

    #[test]
    fn compound_of_version_3_packs_names_and_offsets() {
        let member = |offset: u8, name: &[u8]| [name, &[0, offset], &le(&I32)].concat();
        let compound = |members: &[(u8, &[u8])]| {
            let members: Vec<_> = members.iter().flat_map(|(offset, name)| member(*offset, name)).collect();
            message(0x36, 2, 8, &[&members])
        };
        let valid = decoded(&compound(&[(4, b"x"), (0, b"yy")]));
        let TypeClass::Compound { members, .. } = valid else { panic!("{valid:?}") };
        assert_eq!(members.iter().map(|member| member.offset_bytes).collect::<Vec<_>>(), [4, 0]);
        // Overlap, outside, duplicate name.
        assert!(decode(&compound(&[(2, b"x"), (0, b"y")])).is_err());
        assert!(decode(&compound(&[(5, b"x"), (0, b"y")])).is_err());
        assert!(decode(&compound(&[(4, b"x"), (0, b"x")])).is_err());
    }

    #[test]
    fn enumerations_of_both_name_forms() {
        let base = le(&I32);
        let values = le(&[(1, 4), (42, 4)]);
        let expected = TypeClass::Enum {
            base: Arc::new(i32_class()),
            symbols: vec![(b"RED".to_vec(), vec![1, 0, 0, 0]), (b"B".to_vec(), vec![42, 0, 0, 0])],
        };
        let padded = message(0x18, 2, 4, &[&base, b"RED\0----B\0------", &values]);
        assert_eq!(decoded(&padded), expected);
        let packed = message(0x38, 2, 4, &[&base, b"RED\0B\0", &values]);
        assert_eq!(decoded(&packed), expected);
        let double = message(0x38, 2, 4, &[&base, b"B\0B\0", &values]);
        assert!(decode(&double).is_err());
    }

    #[test]
    fn arrays_must_have_their_size() {
        let base = le(&I32);
        let expected = TypeClass::Array { base: Arc::new(i32_class()), dims: vec![3, 5] };
        let old = message(0x2a, 0, 60, &[&le(&[(2, 1), (0, 3), (3, 4), (5, 4), (0, 4), (0, 4)]), &base]);
        assert_eq!(decoded(&old), expected);
        let shape = le(&[(2, 1), (3, 4), (5, 4)]);
        assert_eq!(decoded(&message(0x3a, 0, 60, &[&shape, &base])), expected);
        assert!(decode(&message(0x3a, 0, 64, &[&shape, &base])).is_err());
        let huge = le(&[(3, 1), (u64::MAX, 4), (u64::MAX, 4), (u64::MAX, 4)]);
        assert!(decode(&message(0x3a, 0, 4, &[&huge, &base])).is_err());
    }

    #[test]
    fn references_and_complex_numbers() {
        let reference = |version_and_class, kind, len| decode(&message(version_and_class, kind, len, &[]));
        assert_eq!(reference(0x17, 0, 8), Ok(TypeClass::Reference(ReferenceKind::Object)));
        assert_eq!(reference(0x17, 1, 12), Ok(TypeClass::Reference(ReferenceKind::Region)));
        let revised = TypeClass::Reference(ReferenceKind::Revised { kind: 3, len_bytes: 18 });
        assert_eq!(reference(0x47, 0x13, 18), Ok(revised));
        assert!(matches!(reference(0x17, 0, 4), Err(Defect::Unsupported { .. })));
        let complex = decoded(&message(0x5b, 1, 8, &[&le(&I32)]));
        assert_eq!(complex, TypeClass::Complex { base: Arc::new(i32_class()), len_bytes: 8 });
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| {
            let mut bytes: Vec<u8> = (0..depth).flat_map(|_| message(0x19, 0, 16, &[])).collect();
            bytes.extend(le(&I32));
            decode(&bytes)
        };
        assert!(nested(MAX_DEPTH).is_ok());
        assert!(matches!(nested(MAX_DEPTH + 1), Err(Defect::Unsupported { .. })));
        assert!(matches!(nested(100_000), Err(Defect::Unsupported { .. })));
    }

    #[test]
    fn size_zero_and_bits_outside_are_refused() {
        assert!(decode(&message(0x13, 0, 0, &[])).is_err());
        assert!(decode(&le(&[(0x10, 1), (0, 3), (4, 4), (1, 2), (32, 2)])).is_err());
        assert!(decode(&le(&[(0x10, 1), (0, 3), (4, 4), (0, 2), (0, 2)])).is_err());
    }
}
