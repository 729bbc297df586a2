//! Description of a folder of images, for reports.

use super::image::{Image, Images};
use serde::Serialize;
use std::path::Path;

/// A level of an image, with axes slowest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelInfo {
    /// Number of samples along each axis.
    pub shape: Vec<u64>,
    /// Distance between samples along each axis.
    pub scale: Vec<f64>,
    /// Number of samples of a shard along each axis.
    pub shard: Vec<u64>,
    /// Number of samples of a chunk along each axis.
    pub chunk: Vec<u64>,
    /// Codec of chunks; `none` if none is named.
    pub codec: &'static str,
}

/// Description of an image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageInfo {
    /// Name of the image; empty if it has none.
    pub name: String,
    /// Path of the image's folder as text.
    pub folder: String,
    /// Type of the numbers.
    pub dtype: &'static str,
    /// Names of the axes, slowest first.
    pub axes: String,
    /// Unit of distances in space.
    pub unit: Option<String>,
    /// Name of the method by which a level is computed from the previous one.
    pub downsample: Option<String>,
    /// Levels, finest first.
    pub levels: Vec<LevelInfo>,
}

/// Description of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FolderInfo {
    /// Path of the folder as text.
    pub path: String,
    /// Images in the folder.
    pub images: Vec<ImageInfo>,
}

impl FolderInfo {
    /// Describes the images in the folder at `path`.
    pub fn of(path: &Path, images: &Images) -> Self {
        Self { path: path.display().to_string(), images: images.images.iter().map(ImageInfo::of).collect() }
    }
}

impl ImageInfo {
    fn of(image: &Image) -> Self {
        let rank = image.axes().len();
        let of_axes = |of: &[u64]| of[..rank].iter().rev().copied().collect::<Vec<u64>>();
        let level = |level: usize| {
            let (shard, chunk, codec) = image.layout(level);
            LevelInfo {
                shape: of_axes(&image.domain(level).end),
                scale: image.scale(level).iter().rev().copied().collect(),
                shard: of_axes(&shard),
                chunk: of_axes(&chunk),
                codec: codec.unwrap_or("none"),
            }
        };
        Self {
            name: image.name().to_owned(),
            folder: image.folder().display().to_string(),
            dtype: image.number().name(),
            axes: image.axes().iter().rev().collect(),
            unit: image.unit().map(str::to_owned),
            downsample: image.method().map(str::to_owned),
            levels: (0..image.level_count()).map(level).collect(),
        }
    }
}
