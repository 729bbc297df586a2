//! The schema of a set of files, and how a file is made from it.

use super::SchemaOptions;
use super::draw::{Draw, Targets, clear_insignificant_bits, push_value, push_zero};
use super::types::{file_local_type, fixed_type};
use crate::content::Path;
use crate::spec::{AttributeSpec, DatasetSpec, FileSpec, FilterSpec, Format, LayoutSpec, ObjectSpec, What};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use raddle_hdf5::model::{CreationOrder, Dataspace, TypeClass};
use std::sync::Arc;

/// Schema of a set of files.
#[derive(Debug, Clone)]
pub struct Sketch {
    groups: Vec<GroupSketch>,
    committed: Vec<Arc<TypeClass>>,
    datasets: Vec<DatasetSketch>,
    links: Vec<LinkSketch>,
    root_attributes: Vec<AttributeSketch>,
    root_order: CreationOrder,
    scalar_seed: u64,
}

#[derive(Debug, Clone)]
struct GroupSketch {
    /// Selects the root or an earlier group.
    parent: Index,
    order: CreationOrder,
    attributes: Vec<AttributeSketch>,
}

#[derive(Debug, Clone)]
struct DatasetSketch {
    parent: Index,
    name: &'static str,
    class: Arc<TypeClass>,
    extent: ExtentSketch,
    fill_seed: Option<u64>,
    /// Whether the dataset uses a separate committed type.
    committed: bool,
    attributes: Vec<AttributeSketch>,
    /// Storage in each file.
    storages: Vec<StorageSketch>,
}

#[derive(Debug, Clone)]
enum ExtentSketch {
    Scalar,
    Null,
    /// Dimensions beyond axis 0.
    Rows(Vec<u64>),
}

#[derive(Debug, Clone)]
struct StorageSketch {
    rows: u64,
    layout: u8,
    chunk_shape: [u64; 4],
    unlimited: bool,
    filters: Vec<FilterSpec>,
    early_allocation: bool,
    /// Share of rows to write, in 256ths.
    written: u64,
    seed: u64,
}

#[derive(Debug, Clone)]
struct LinkSketch {
    parent: Index,
    kind: u8,
    target: Index,
}

#[derive(Debug, Clone)]
struct AttributeSketch {
    class: Arc<TypeClass>,
    dataspace: Dataspace,
    seed: u64,
    /// Whether all files have the same value.
    same: bool,
}

/// Properties of a single file, independent of the schema.
#[derive(Debug, Clone)]
pub struct Variant {
    format: Format,
    userblock_len_bytes: u64,
}

pub fn variant(options: &SchemaOptions) -> impl Strategy<Value = Variant> + use<> {
    (select(options.formats.clone()), prop_oneof![4 => Just(0_u64), 1 => select(vec![512_u64, 2048])])
        .prop_map(|(format, userblock_len_bytes)| Variant { format, userblock_len_bytes })
}

pub fn sketch(options: &SchemaOptions, files: usize) -> impl Strategy<Value = Sketch> + use<> {
    let attributes = attributes(options);
    let group = (any::<Index>(), creation_order(), attributes.clone());
    let group = group.prop_map(|(parent, order, attributes)| GroupSketch { parent, order, attributes });
    let link = (any::<Index>(), 0_u8..3, any::<Index>());
    let link = link.prop_map(|(parent, kind, target)| LinkSketch { parent, kind, target });
    let max_links = if options.links { 3 } else { 0 };
    let max_committed = if options.committed_types { 2 } else { 0 };
    (
        vec(group, 0..4),
        vec(fixed_type().prop_map(Arc::new), 0..=max_committed),
        vec(dataset(options, attributes.clone(), files), 0..=options.max_datasets),
        vec(link, 0..=max_links),
        attributes,
        creation_order(),
        any::<u64>(),
    )
        .prop_map(|(groups, committed, datasets, links, root_attributes, root_order, scalar_seed)| Sketch {
            groups,
            committed,
            datasets,
            links,
            root_attributes,
            root_order,
            scalar_seed,
        })
}

fn creation_order() -> impl Strategy<Value = CreationOrder> {
    // libhdf5 refuses an indexed order that is not tracked.
    let order = |tracked, indexed| CreationOrder { tracked, indexed };
    prop_oneof![4 => Just(order(false, false)), 1 => Just(order(true, false)), 1 => Just(order(true, true))]
}

fn any_type(options: &SchemaOptions) -> BoxedStrategy<Arc<TypeClass>> {
    if options.file_local_types {
        prop_oneof![3 => fixed_type(), 1 => file_local_type()].prop_map(Arc::new).boxed()
    } else {
        fixed_type().prop_map(Arc::new).boxed()
    }
}

fn attributes(options: &SchemaOptions) -> BoxedStrategy<Vec<AttributeSketch>> {
    if !options.attributes {
        return Just(Vec::new()).boxed();
    }
    let dataspace = prop_oneof![
        4 => Just(Dataspace::Scalar),
        1 => Just(Dataspace::Null),
        3 => vec(0_u64..4, 1..3).prop_map(|dims| Dataspace::Simple { max_dims: dims.clone(), dims }),
    ];
    let attribute = (any_type(options), dataspace, any::<u64>(), any::<bool>());
    let attribute =
        attribute.prop_map(|(class, dataspace, seed, same)| AttributeSketch { class, dataspace, seed, same });
    // Newer formats store nine or more attributes densely.
    prop_oneof![3 => Just(Vec::new()), 2 => vec(attribute.clone(), 1..3), 1 => vec(attribute, 9..12)].boxed()
}

/// Names that tools must preserve: spaces, dots, other scripts, and characters that confuse shells and terminals.
const NAMES: [&str; 8] = ["evt", "vtx.x", "with space", "Zähler", "-rf", "a\tb", "名前", "x\u{1b}[31m"];

fn dataset(
    options: &SchemaOptions,
    attributes: BoxedStrategy<Vec<AttributeSketch>>,
    files: usize,
) -> impl Strategy<Value = DatasetSketch> + use<> {
    let rows = vec(prop_oneof![9 => 1_u64..5, 1 => Just(0)], 0..3).prop_map(ExtentSketch::Rows);
    let extent = if options.scalars {
        prop_oneof![8 => rows, 1 => Just(ExtentSketch::Scalar), 1 => Just(ExtentSketch::Null)].boxed()
    } else {
        rows.boxed()
    };
    let identity = (any::<Index>(), select(NAMES.to_vec()), any_type(options), extent);
    let fill_seed = proptest::option::weighted(0.3, any::<u64>());
    let committed = if options.committed_types { proptest::bool::weighted(0.15).boxed() } else { Just(false).boxed() };
    (identity, fill_seed, committed, attributes, vec(storage(options), files)).prop_map(
        |((parent, name, class, extent), fill_seed, committed, attributes, storages)| DatasetSketch {
            parent,
            name,
            class,
            extent,
            fill_seed,
            committed,
            attributes,
            storages,
        },
    )
}

fn storage(options: &SchemaOptions) -> impl Strategy<Value = StorageSketch> + use<> {
    let deflate = (0_u32..10).prop_map(FilterSpec::Deflate);
    let filters = if options.filters {
        prop_oneof![
            3 => Just(Vec::new()),
            4 => deflate.clone().prop_map(|deflate| vec![deflate]),
            2 => deflate.clone().prop_map(|deflate| vec![FilterSpec::Shuffle, deflate]),
            1 => deflate.prop_map(|deflate| vec![FilterSpec::Shuffle, deflate, FilterSpec::Fletcher32]),
            1 => Just(vec![FilterSpec::Fletcher32]),
            1 => Just(vec![FilterSpec::Nbit]),
        ]
        .boxed()
    } else {
        Just(Vec::new()).boxed()
    };
    let rows = prop_oneof![1 => Just(0), 6 => 0..=options.max_rows];
    let shape = [1_u64..20, 1..6, 1..6, 1..6];
    let written = prop_oneof![6 => Just(256_u64), 1 => Just(0), 2 => 0_u64..256];
    (rows, 0_u8..8, shape, any::<bool>(), filters, proptest::bool::weighted(0.2), written, any::<u64>()).prop_map(
        |(rows, layout, chunk_shape, unlimited, filters, early_allocation, written, seed)| StorageSketch {
            rows,
            layout,
            chunk_shape,
            unlimited,
            filters,
            early_allocation,
            written,
            seed,
        },
    )
}

/// Maximum length of a compact dataset: an object header message holds 64 KiB, including headers.
const MAX_COMPACT_BYTES: u64 = 60_000;

impl Sketch {
    /// Returns the file with this number.
    pub fn file(&self, number: usize, variant: &Variant) -> FileSpec {
        let groups = self.group_paths();
        let mut objects = Vec::new();
        for (path, group) in groups[1..].iter().zip(&self.groups) {
            objects.push(ObjectSpec { path: path.clone(), what: What::Group(group.order), attributes: Vec::new() });
        }
        for (number, class) in self.committed.iter().enumerate() {
            let path = format!("/type{number}").into_bytes();
            objects.push(ObjectSpec::link("", What::CommittedType((**class).clone())).named(path));
        }
        let paths = self.dataset_paths(&groups);
        for (path, dataset) in paths.iter().zip(&self.datasets).filter(|(_, dataset)| dataset.committed) {
            let path = [path, &b" type"[..]].concat();
            objects.push(ObjectSpec::link("", What::CommittedType((*dataset.class).clone())).named(path));
        }
        let targets = self.targets(number, &paths, &objects);
        for (path, dataset) in paths.iter().zip(&self.datasets) {
            objects.push(dataset.object(path, number, self.scalar_seed, &targets));
        }
        let mut attributed = vec![(b"/".to_vec(), &self.root_attributes)];
        attributed.extend(groups[1..].iter().cloned().zip(self.groups.iter().map(|group| &group.attributes)));
        for (path, attributes) in attributed {
            let attributes = specs(attributes, number, &targets);
            match objects.iter_mut().find(|object| object.path == path) {
                Some(object) => object.attributes = attributes,
                None => objects.push(ObjectSpec { path, what: What::Group(self.root_order), attributes }),
            }
        }
        self.push_links(&groups, &paths, &mut objects);
        FileSpec {
            format: variant.format,
            userblock_len_bytes: variant.userblock_len_bytes,
            root_order: self.root_order,
            objects,
        }
    }

    /// Returns the paths of the root and the groups.
    fn group_paths(&self) -> Vec<Path> {
        let mut paths = vec![b"/".to_vec()];
        for (number, group) in self.groups.iter().enumerate() {
            let parent = &paths[group.parent.index(paths.len())];
            paths.push(child(parent, &format!("group{number}")));
        }
        paths
    }

    fn dataset_paths(&self, groups: &[Path]) -> Vec<Path> {
        let path = |(number, dataset): (usize, &DatasetSketch)| {
            child(&groups[dataset.parent.index(groups.len())], &format!("{}{number}", dataset.name))
        };
        self.datasets.iter().enumerate().map(path).collect()
    }

    fn targets(&self, file: usize, paths: &[Path], before: &[ObjectSpec]) -> Targets {
        let mut targets = Targets::default();
        // Objects with further hard links have several names, and libhdf5 may report any of them, so nothing refers to
        // them.
        let linked = self.hard_link_targets(paths);
        targets.objects.extend(before.iter().map(|object| object.path.clone()));
        for (path, dataset) in paths.iter().zip(&self.datasets).filter(|(path, _)| !linked.contains(path)) {
            targets.objects.push(path.clone());
            if let Dataspace::Simple { dims, .. } = dataset.dataspace(file)
                && dims.iter().all(|&dim| dim > 0)
            {
                targets.datasets.push((path.clone(), dims));
            }
        }
        targets
    }

    fn hard_link_targets<'p>(&self, paths: &'p [Path]) -> Vec<&'p Path> {
        let hard = self.links.iter().filter(|link| link.kind == 0 && !paths.is_empty());
        hard.map(|link| &paths[link.target.index(paths.len())]).collect()
    }

    fn push_links(&self, groups: &[Path], paths: &[Path], objects: &mut Vec<ObjectSpec>) {
        for (number, link) in self.links.iter().enumerate() {
            let parent = &groups[link.parent.index(groups.len())];
            // Hard links sort before and after the datasets' names.
            let path = child(parent, &format!("{}link{number}", if number % 2 == 0 { "!" } else { "z" }));
            let what = match link.kind {
                0 if paths.is_empty() => continue,
                0 => What::HardLink(paths[link.target.index(paths.len())].clone()),
                1 => What::SoftLink(b"../somewhere/else".to_vec()),
                _ => What::ExternalLink { file: b"other.h5".to_vec(), path: b"/data".to_vec() },
            };
            objects.push(ObjectSpec { path, what, attributes: Vec::new() });
        }
    }
}

fn child(parent: &[u8], name: &str) -> Path {
    let parent = if parent == b"/" { b"" } else { parent };
    [parent, b"/", name.as_bytes()].concat()
}

fn specs(attributes: &[AttributeSketch], file: usize, targets: &Targets) -> Vec<AttributeSpec> {
    let spec = |(number, sketch): (usize, &AttributeSketch)| {
        let mut values = Vec::new();
        let mut draw = Draw::new(sketch.seed.wrapping_add(if sketch.same { 0 } else { file as u64 }));
        let elements = sketch.dataspace.element_count().unwrap_or(0);
        (0..elements).for_each(|_| push_value(&sketch.class, targets, &mut draw, &mut values));
        AttributeSpec {
            name: format!("{}{number}", NAMES[number % NAMES.len()]).into_bytes(),
            class: Arc::clone(&sketch.class),
            dataspace: sketch.dataspace.clone(),
            values,
        }
    };
    attributes.iter().enumerate().map(spec).collect()
}

impl DatasetSketch {
    fn dataspace(&self, file: usize) -> Dataspace {
        match &self.extent {
            ExtentSketch::Scalar => Dataspace::Scalar,
            ExtentSketch::Null => Dataspace::Null,
            ExtentSketch::Rows(tail) => {
                let storage = &self.storages[file];
                let dims: Vec<u64> = std::iter::once(storage.rows).chain(tail.iter().copied()).collect();
                let mut max_dims = dims.clone();
                if matches!(storage.layout_of(&dims, &self.class), LayoutSpec::Chunked(_)) {
                    // A chunk must fit into a limited dimension, so no dimension is limited to 0.
                    for (axis, max) in max_dims.iter_mut().enumerate() {
                        if *max == 0 || (axis == 0 && storage.unlimited) {
                            *max = u64::MAX;
                        }
                    }
                }
                Dataspace::Simple { dims, max_dims }
            }
        }
    }

    fn object(&self, path: &[u8], file: usize, scalar_seed: u64, targets: &Targets) -> ObjectSpec {
        let storage = &self.storages[file];
        let dataspace = self.dataspace(file);
        let simple = matches!(dataspace, Dataspace::Simple { .. });
        let layout = if simple { storage.layout_of(dataspace.dims(), &self.class) } else { LayoutSpec::Contiguous };
        let nbit_fits = matches!(*self.class, TypeClass::Integer { .. });
        let keep = |filter: &&FilterSpec| nbit_fits || **filter != FilterSpec::Nbit;
        let chunked = matches!(layout, LayoutSpec::Chunked(_));
        let filters: Vec<FilterSpec> = storage.filters.iter().filter(keep).filter(|_| chunked).copied().collect();
        let fill = self.fill_seed.filter(|_| !self.class.is_file_local()).map(|seed| {
            let mut value = Vec::new();
            push_value(&self.class, targets, &mut Draw::new(seed), &mut value);
            clear_insignificant_bits(&self.class, &mut value);
            value
        });
        let rows = dataspace.dims().first().copied();
        let elements = dataspace.element_count().unwrap_or(0);
        // Without a fill value, libhdf5 leaves early-allocated storage uninitialised, so there is nothing to compare
        // with.
        let unwritten_is_zero = fill.is_some() || (chunked && !storage.early_allocation);
        let written_rows = match rows {
            Some(_) if unwritten_is_zero => storage.rows * storage.written / 256,
            Some(_) => storage.rows,
            None => u64::MAX,
        };
        let written_elements = match rows {
            Some(rows) if rows > 0 => elements / rows * written_rows,
            Some(_) => 0,
            None => elements,
        };
        let mut values = Vec::new();
        // Scalars must be equal in all files to be merged; regions may differ, because they depend on the rows.
        let scalar_targets = Targets { objects: targets.objects.clone(), datasets: Vec::new() };
        let (seed, targets) = if rows.is_some() { (storage.seed, targets) } else { (scalar_seed, &scalar_targets) };
        let mut draw = Draw::new(seed);
        for number in 0..elements {
            match &fill {
                _ if number < written_elements => push_value(&self.class, targets, &mut draw, &mut values),
                Some(fill) => values.extend_from_slice(fill),
                None => push_zero(&self.class, &mut values),
            }
        }
        if filters.contains(&FilterSpec::Nbit) {
            clear_insignificant_bits(&self.class, &mut values);
        }
        let spec = DatasetSpec {
            class: Arc::clone(&self.class),
            committed: self.committed.then(|| [path, &b" type"[..]].concat()),
            dataspace,
            layout,
            filters,
            fill,
            early_allocation: storage.early_allocation,
            written_rows,
            values,
        };
        let attributes = specs(&self.attributes, file, targets);
        ObjectSpec { path: path.to_vec(), what: What::Dataset(Box::new(spec)), attributes }
    }
}

impl StorageSketch {
    fn layout_of(&self, dims: &[u64], class: &TypeClass) -> LayoutSpec {
        let elements: u64 = dims.iter().product();
        match self.layout {
            0 if elements * class.len_bytes() <= MAX_COMPACT_BYTES => LayoutSpec::Compact,
            0..=2 => LayoutSpec::Contiguous,
            _ => {
                let fits = |(axis, (&chunk, &dim)): (usize, (&u64, &u64))| {
                    let limited = dim > 0 && !(axis == 0 && self.unlimited);
                    if limited { chunk.min(dim) } else { chunk }
                };
                LayoutSpec::Chunked(self.chunk_shape.iter().zip(dims).enumerate().map(fits).collect())
            }
        }
    }
}

impl ObjectSpec {
    fn named(mut self, path: Path) -> Self {
        self.path = path;
        self
    }
}
