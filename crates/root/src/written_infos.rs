//! The description of the class `ROOT::RNTuple` (`TStreamerInfo`), which every file with an RNTuple contains.
//!
//! The bytes equal those of ROOT's writer, except for the version of `TStreamerInfo`, which is the one used throughout
//! ROOT 6.

/// Members of the anchor, and whether they have 64 bits instead of 16.
const MEMBERS: [(&str, bool); 11] = [
    ("fVersionEpoch", false),
    ("fVersionMajor", false),
    ("fVersionMinor", false),
    ("fVersionPatch", false),
    ("fSeekHeader", true),
    ("fNBytesHeader", true),
    ("fLenHeader", true),
    ("fSeekFooter", true),
    ("fNBytesFooter", true),
    ("fLenFooter", true),
    ("fMaxKeySize", true),
];

/// Version of the class, and ROOT's checksum of its members' names and types.
pub(super) const ANCHOR_VERSION: u16 = 2;
const ANCHOR_CHECKSUM: u32 = 0x28e6_32ec;

/// Flag that marks the length of an object.
const LENGTH_FLAG: u32 = 0x4000_0000;

/// Flag that marks the number of a class that was named before.
const CLASS_FLAG: u32 = 0x8000_0000;

/// Number added to positions in numbers of classes.
const CLASS_OFFSET: u32 = 2;

/// Returns `content`, preceded by its length.
pub(super) fn counted(content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u32 | LENGTH_FLAG).to_be_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes
}

/// Returns an object of a version with its length in front.
fn object(version: u16, content: &[u8]) -> Vec<u8> {
    counted(&[&version.to_be_bytes(), content].concat())
}

/// Encodes a `TObject` with these bits.
fn base(bits: u32) -> Vec<u8> {
    [&1_u16.to_be_bytes()[..], &0_u32.to_be_bytes(), &bits.to_be_bytes()].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn named(bits: u32, name: &str) -> Vec<u8> {
    object(1, &[base(bits), text(name), text("")].concat())
}

/// Encodes a `TStreamerBasicType`.
fn member(name: &str, is_long: bool) -> Vec<u8> {
    let (code, len_bytes, type_name) = if is_long { (14, 8, "unsigned long") } else { (12, 2, "unsigned short") };
    // Type and length of the member, followed by zeros for two lengths and five dimensions, because it is not an array.
    let numbers = [code, len_bytes, 0, 0, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    let element = object(4, &[named(0, name), numbers, text(type_name)].concat());
    object(2, &element)
}

/// Returns `object` preceded by the name of its class.
fn of_class(class: &str, object: &[u8]) -> Vec<u8> {
    counted(&[&u32::MAX.to_be_bytes(), class.as_bytes(), &[0], object].concat())
}

/// Returns the streamer info list. References to classes count from the start of its key, which has `key_len_bytes`.
pub(super) fn of_anchor(key_len_bytes: usize) -> Vec<u8> {
    let [(first, is_first_long), others @ ..] = MEMBERS;
    let first = of_class("TStreamerBasicType", &member(first, is_first_long));
    // The other members refer to the position at which the first names the class, which is known once everything before
    // it is.
    let make = |class: u32| {
        let mut array = base(0);
        array.extend_from_slice(&text(""));
        array.extend_from_slice(&(MEMBERS.len() as u32).to_be_bytes());
        array.extend_from_slice(&0_u32.to_be_bytes());
        array.extend_from_slice(&first);
        for (name, is_long) in others {
            array.extend_from_slice(&counted(&[&class.to_be_bytes(), member(name, is_long).as_slice()].concat()));
        }
        let array = of_class("TObjArray", &object(3, &array));
        let numbers = [ANCHOR_CHECKSUM, u32::from(ANCHOR_VERSION)].map(u32::to_be_bytes).concat();
        let info = object(9, &[named(1 << 16, "ROOT::RNTuple"), numbers, array].concat());
        let info = of_class("TStreamerInfo", &info);
        // A list with one element and empty options.
        object(5, &[base(0), text(""), 1_u32.to_be_bytes().to_vec(), info, text("")].concat())
    };
    let list = make(0);
    let place = list.windows(first.len()).position(|window| window == first).unwrap_or(0);
    // The mark of a named class follows the length of the first element.
    make(CLASS_FLAG | ((key_len_bytes + place + 4) as u32 + CLASS_OFFSET))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_as_long_as_that_of_root() {
        // Written by ROOT 6.40, after a key of 72 bytes.
        let list = of_anchor(72);
        assert_eq!(list.len(), 1254);
        assert_eq!(list[0x100..0x104], 0x8000_00d1_u32.to_be_bytes());
        assert!(list.ends_with(b"\x0dunsigned long\x00"));
    }
}
