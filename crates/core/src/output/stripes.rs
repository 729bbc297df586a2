//! Stripe layout reported by a file system.
//!
//! Lustre stores it in an extended attribute of a file or of the directory from which new files inherit it; GPFS has
//! one block length per file system. The use of stripes is in [`crate::output::arenas`]. Invariant: malformed
//! attributes are treated as missing, never as a length.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Origin of the stripe length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StripeSource {
    /// User option.
    Asked,
    /// Layout of the directory on Lustre.
    Lustre,
    /// Default of Lustre, because the directory has no layout.
    LustreDefault,
    /// Block length of GPFS.
    Gpfs,
    /// Block length of another file system.
    Block,
}

/// Stripes of a file yet to be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stripes {
    /// Length of a stripe.
    pub len_bytes: u64,
    /// Number of targets over which a file is distributed, if known.
    pub count: Option<u32>,
    /// Origin of the length.
    pub source: StripeSource,
}

/// File system types in `statfs`.
const LUSTRE_TYPE: u64 = 0x0BD0_0BD0;
const GPFS_TYPE: u64 = 0x4750_4653;

/// Default of Lustre without a layout: 1 MiB on one target (Lustre manual, "Setting the File Layout").
const LUSTRE_DEFAULT_LEN_BYTES: u64 = 1 << 20;

/// Extended attribute with the layout, and the maximum length of an attribute on Linux.
const LUSTRE_LAYOUT: &str = "lustre.lov";
const MAX_LAYOUT_BYTES: usize = 64 << 10;

/// Longest plausible stripe; Lustre's own limit is 4 GiB.
const MAX_LEN_BYTES: u64 = 4 << 30;

/// Returns the stripes of a new file in `folder`.
///
/// # Errors
/// If the folder does not exist.
#[cfg(target_os = "linux")]
pub fn of_folder(folder: &Path) -> std::io::Result<Stripes> {
    let found = rustix::fs::statfs(folder)?;
    let block_len_bytes = u64::try_from(found.f_bsize).unwrap_or(0);
    // The type has 32 bits, whatever the width of the field.
    Ok(match (found.f_type as u64) & 0xFFFF_FFFF {
        LUSTRE_TYPE => of_lustre(folder),
        GPFS_TYPE => of_block(block_len_bytes, StripeSource::Gpfs),
        _ => of_block(block_len_bytes, StripeSource::Block),
    })
}

/// Returns the stripes of a new file in `folder`.
///
/// # Errors
/// If the folder does not exist.
#[cfg(not(target_os = "linux"))]
pub fn of_folder(folder: &Path) -> std::io::Result<Stripes> {
    use std::os::unix::fs::MetadataExt;
    Ok(of_block(std::fs::metadata(folder)?.blksize(), StripeSource::Block))
}

fn of_block(len_bytes: u64, source: StripeSource) -> Stripes {
    Stripes { len_bytes: len_bytes.clamp(1, MAX_LEN_BYTES), count: None, source }
}

#[cfg(target_os = "linux")]
fn of_lustre(folder: &Path) -> Stripes {
    let default = of_block(LUSTRE_DEFAULT_LEN_BYTES, StripeSource::LustreDefault);
    let mut layout = vec![0; MAX_LAYOUT_BYTES];
    let len = rustix::fs::getxattr(folder, LUSTRE_LAYOUT, &mut layout[..]);
    len.ok().and_then(|len| layout_stripes(layout.get(..len)?)).unwrap_or(default)
}

/// Magic numbers of layouts (`lustre_user.h`: `LOV_USER_MAGIC_*`).
const PLAIN: u32 = 0x0BD1_0BD0;
const PLAIN_IN_POOL: u32 = 0x0BD3_0BD0;
const OF_GIVEN_TARGETS: u32 = 0x0BD5_0BD0;
const COMPOSITE: u32 = 0x0BD6_0BD0;

/// Offsets in a plain layout (`struct lov_user_md_v1`; the others begin in the same way).
const STRIPE_LEN_AT: usize = 24;
const STRIPE_COUNT_AT: usize = 28;

/// Offsets in a composite layout (`struct lov_comp_md_v1`, `struct lov_comp_md_entry_v1`).
const ENTRY_COUNT_AT: usize = 14;
const ENTRIES_AT: usize = 32;
const ENTRY_LEN: usize = 48;
const ENTRY_LAYOUT_AT: usize = 24;

/// Parses a layout in the form of `struct lov_user_md`. For a composite layout, returns the longest stripes of all
/// components if they are a multiple of the others, otherwise `None`.
fn layout_stripes(layout: &[u8]) -> Option<Stripes> {
    let words = LayoutReader { layout, is_swapped: false };
    let magic = words.u32_at(0)?;
    let is_swapped = [PLAIN, PLAIN_IN_POOL, OF_GIVEN_TARGETS, COMPOSITE].contains(&magic.swap_bytes());
    let words = LayoutReader { layout, is_swapped };
    if words.u32_at(0)? != COMPOSITE {
        return words.plain_at(0);
    }
    let count = usize::from(words.u16_at(ENTRY_COUNT_AT)?);
    let component = |number: usize| {
        let at = words.u32_at(ENTRIES_AT + number * ENTRY_LEN + ENTRY_LAYOUT_AT)?;
        words.plain_at(usize::try_from(at).ok()?)
    };
    let components = (0..count).map(component).collect::<Option<Vec<_>>>()?;
    let longest = *components.iter().max_by_key(|stripes| (stripes.len_bytes, stripes.count))?;
    components.iter().all(|stripes| longest.len_bytes.is_multiple_of(stripes.len_bytes)).then_some(longest)
}

/// Numbers in a layout, in the byte order of the machine that wrote it.
#[derive(Clone, Copy)]
struct LayoutReader<'a> {
    layout: &'a [u8],
    is_swapped: bool,
}

impl LayoutReader<'_> {
    fn u32_at(self, at: usize) -> Option<u32> {
        let word = u32::from_le_bytes(*self.layout.get(at..)?.first_chunk()?);
        Some(if self.is_swapped { word.swap_bytes() } else { word })
    }

    fn u16_at(self, at: usize) -> Option<u16> {
        let word = u16::from_le_bytes(*self.layout.get(at..)?.first_chunk()?);
        Some(if self.is_swapped { word.swap_bytes() } else { word })
    }

    fn plain_at(self, at: usize) -> Option<Stripes> {
        let is_known = [PLAIN, PLAIN_IN_POOL, OF_GIVEN_TARGETS].contains(&self.u32_at(at)?);
        let len_bytes = u64::from(self.u32_at(at.checked_add(STRIPE_LEN_AT)?)?);
        let count = self.u16_at(at.checked_add(STRIPE_COUNT_AT)?)?;
        // A length or count of 0 is the file system's default; a count of all ones means all targets.
        let count = (count != 0 && count != u16::MAX).then_some(u32::from(count));
        let len_bytes = if len_bytes == 0 { LUSTRE_DEFAULT_LEN_BYTES } else { len_bytes };
        is_known.then_some(Stripes { len_bytes, count, source: StripeSource::Lustre })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(magic: u32, stripe_len: u32, count: u16) -> Vec<u8> {
        let mut layout = magic.to_le_bytes().to_vec();
        layout.extend([0; 20]);
        layout.extend(stripe_len.to_le_bytes());
        layout.extend(count.to_le_bytes());
        layout.extend([0; 2]);
        layout
    }

    fn composite(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut layout = vec![0; ENTRIES_AT + ENTRY_LEN * parts.len()];
        layout[..4].copy_from_slice(&COMPOSITE.to_le_bytes());
        layout[ENTRY_COUNT_AT..][..2].copy_from_slice(&(parts.len() as u16).to_le_bytes());
        for (number, part) in parts.iter().enumerate() {
            let at = (layout.len() as u32).to_le_bytes();
            layout[ENTRIES_AT + number * ENTRY_LEN + ENTRY_LAYOUT_AT..][..4].copy_from_slice(&at);
            layout.extend(part);
        }
        layout
    }

    fn lustre(len_bytes: u64, count: Option<u32>) -> Option<Stripes> {
        Some(Stripes { len_bytes, count, source: StripeSource::Lustre })
    }

    #[test]
    fn layouts_of_lustre_are_understood() {
        assert_eq!(layout_stripes(&plain(PLAIN, 4 << 20, 8)), lustre(4 << 20, Some(8)));
        assert_eq!(layout_stripes(&plain(PLAIN_IN_POOL, 1 << 16, u16::MAX)), lustre(1 << 16, None));
        assert_eq!(layout_stripes(&plain(PLAIN, 0, 0)), lustre(1 << 20, None));
        let grown = [plain(PLAIN, 1 << 20, 1), plain(PLAIN_IN_POOL, 4 << 20, 16)];
        assert_eq!(layout_stripes(&composite(&grown)), lustre(4 << 20, Some(16)));
        let odd = [plain(PLAIN, 3 << 16, 1), plain(PLAIN, 4 << 16, 1)];
        assert_eq!(layout_stripes(&composite(&odd)), None);
        assert_eq!(layout_stripes(&composite(&[])), None);
        // Written by a machine with the other byte order.
        let mut swapped = plain(PLAIN, 4 << 20, 8);
        swapped[..4].reverse();
        swapped[24..28].reverse();
        swapped[28..30].reverse();
        assert_eq!(layout_stripes(&swapped), lustre(4 << 20, Some(8)));
    }

    #[test]
    fn every_folder_has_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let stripes = of_folder(folder.path()).unwrap();
        assert!(stripes.len_bytes >= 512 && stripes.len_bytes <= MAX_LEN_BYTES, "{stripes:?}");
        assert!(of_folder(&folder.path().join("none")).is_err());
    }

    proptest! {
        #[test]
        fn damaged_layouts_say_nothing_or_something_sensible(
            parts in 0usize..4,
            cut in 0usize..300,
            flips in prop::collection::vec((0usize..300, any::<u8>()), 0..20),
        ) {
            let mut layout = composite(&vec![plain(PLAIN, 1 << 20, 4); parts]);
            layout.truncate(cut);
            for (at, byte) in flips {
                if let Some(old) = layout.get_mut(at) {
                    *old = byte;
                }
            }
            if let Some(stripes) = layout_stripes(&layout) {
                prop_assert!(stripes.len_bytes >= 1 && stripes.len_bytes <= MAX_LEN_BYTES);
            }
        }
    }
}
