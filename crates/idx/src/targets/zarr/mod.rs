//! OME-Zarr, the second output format of the three phases: Zarr version 3 with sharding, OME-NGFF 0.5, levels computed
//! by halving.
//!
//! A folder holds one image (one field) or several (one group each); an image holds one array per level. An array is
//! stored in shards, files of many chunks that can be read one by one. Samples, boxes, ranks and phases are those of
//! the rest of this crate. `layout` describes an image, `plan` assigns shards to ranks, `pyramid` makes the levels, and
//! `shard` and `metadata` define the bytes. Design decisions are in docs/design/024-ome-zarr.md.
//!
//! Sources: Zarr core specification 3.0, sharding codec 1.0, OME-NGFF 0.5.

mod check;
mod compare;
mod downsample;
mod fault;
mod image;
mod info;
mod keys;
mod layout;
mod level;
mod metadata;
mod plan;
mod publish;
mod pyramid;
mod shard;
mod target;
mod work;
mod writer;

pub use check::{BadShard, FolderCheck, ImageCheck};
pub use downsample::Downsample;
pub use fault::ZarrFault;
pub use image::{Image, Images, is_zarr};
pub use info::{FolderInfo, ImageInfo, LevelInfo};
pub use layout::{ChunkCompression, FormOptions, ImageLayout};
pub use level::Level;
pub use target::ZarrTarget;
pub use writer::ZarrWriter;
