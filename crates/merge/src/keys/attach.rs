//! Adds computed columns to a plan: chooses the groups that get them, joins their ids, and determines the shapes of the
//! columns.

use super::derived::{DerivedColumn, DerivedValues, KeyedTable, StoredRuns};
use super::first_value::{ConstantColumn, constant_column};
use super::groups::{KeyGroups, key_groups, maker};
use super::growth;
use super::ids::{Domain, IdTable, Ids};
use super::index::Index;
use super::runs::{RunStore, TableRuns};
use super::shared_join::{JOIN, join_collective};
use super::table::{Join, KeyTable, fault_of};
use super::{DerivedSpec, KeyDatasets, KeyFault, KeyFaultKind, KeyScope, KeySpec, RepeatedIds};
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::{MergePlan, NewColumn};
use crate::schema::join::{Difference, DifferenceKind, JoinResult};
use crate::schema::{ABSENT, ColumnIndex, Role, Schema, SchemaEntry, child_path, display_path, last_name, parent_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_codec::Filter;
use raddle_core::output::scratch::Scratch;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::model::{
    BitRange, ByteOrder, CreationOrder, Dataset, Dataspace, Datatype, FillValue, Layout, TypeClass,
};
use raddle_hdf5::source::InputPool;
use std::collections::HashSet;
use std::sync::Arc;

/// Deflate and its level: the only filter that readers of keys support.
const DEFLATE: (u16, u32) = (1, 6);

/// Removes the datasets that `specs` replace, and returns their number.
///
/// # Errors
/// If there are such datasets, and they must not be replaced.
pub fn remove_replaced(schema: &mut Schema, specs: &[DerivedSpec]) -> Result<u64> {
    let mut replaced = 0;
    for spec in specs {
        if let DerivedSpec::FirstValue(spec) = spec
            && spec.derived_path() == spec.dataset.as_bytes()
        {
            let reason = "already exists in the index group".to_owned();
            return Err(MergeError::Object { object: display_path(spec.dataset.as_bytes()), reason });
        }
        let makes = maker(schema, spec)?;
        let is_column = |entry: &&SchemaEntry| matches!(entry.role, Role::Column(_));
        let there = schema.entries.iter().filter(is_column).find(|entry| makes(&entry.path));
        if let (Some(there), false) = (there, spec.replaces()) {
            let reason = "already exists; --force replaces it".to_owned();
            return Err(MergeError::Object { object: display_path(&there.path), reason });
        }
        replaced += schema.remove_columns(makes);
    }
    Ok(replaced)
}

/// Removes differences between datasets that `specs` replace: inputs need not have these datasets, or may have
/// different ones.
///
/// # Errors
/// If specs of keys do not fit the inputs.
pub fn accept_replaced(joined: &mut JoinResult, specs: &[DerivedSpec]) -> Result<()> {
    let specs = specs.iter().filter(|spec| spec.replaces());
    let makers = specs.map(|spec| maker(&joined.schema, spec)).collect::<Result<Vec<_>>>()?;
    let is_replaced =
        |entry: &&SchemaEntry| matches!(entry.role, Role::Column(_)) && makers.iter().any(|makes| makes(&entry.path));
    let replaced: HashSet<String> =
        joined.schema.entries.iter().filter(is_replaced).map(|entry| display_path(&entry.path)).collect();
    joined.differences.retain(|difference| !replaced.contains(&difference.path));
    joined.warnings.retain(|difference| !replaced.contains(&difference.path));
    Ok(())
}

/// Returns the part of `earlier` whose datasets remain in the file after `spec` has added its own; `None` if there are
/// none.
///
/// # Errors
/// If specs of keys do not fit the file.
pub fn left_over(plan: &MergePlan, earlier: &DerivedSpec, spec: &DerivedSpec) -> Result<Option<DerivedSpec>> {
    let schema = &plan.schema;
    let makes = maker(schema, spec)?;
    let is_left = |entry: &SchemaEntry| {
        matches!(entry.role, Role::Column(column) if !plan.derived.has(column)) && earlier.makes(&entry.path)
    };
    if !schema.entries.iter().any(|entry| is_left(entry) && !makes(&entry.path)) {
        return Ok(None);
    }
    let mut left = earlier.clone();
    if let (DerivedSpec::Keys(left), DerivedSpec::Keys(spec)) = (&mut left, spec)
        && left.columns.last().map(|column| last_name(column.as_bytes()))
            == spec.columns.last().map(|column| last_name(column.as_bytes()))
    {
        let keyed = key_groups(schema, spec)?.keyed;
        // The index group always gets keys, and both specs compute the same ones for it.
        let groups = keyed.iter().skip(1).map(|(group, _)| globset::escape(&String::from_utf8_lossy(group)));
        left.skip.extend(groups);
    }
    Ok(Some(left))
}

/// Records how the datasets that the plan copies from its only input, or from the inputs of a union, were computed.
/// `of_input` are the records of those inputs.
///
/// # Errors
/// If specs of keys do not fit the file.
pub fn carry_over(plan: &mut MergePlan, of_input: Vec<DerivedSpec>) -> Result<()> {
    let is_column = |entry: &SchemaEntry| matches!(entry.role, Role::Column(_));
    let mut carried = Vec::new();
    for mut known in of_input {
        if let DerivedSpec::Keys(keys) = &mut known
            && keys.scope == KeyScope::Input
        {
            // The rows of all earlier inputs are now those of one, in which ids must not repeat for an append.
            keys.repeated = RepeatedIds::Refuse;
        }
        if let DerivedSpec::Keys(keys) = &mut known {
            keys.datasets = left_datasets(&plan.schema, keys);
            if plan.inputs.len() > 1 {
                skip_other_inputs(&plan.schema, keys);
            }
        }
        let is_copied = |entry: &SchemaEntry| is_column(entry) && known.makes(&entry.path);
        let mut left = plan.schema.entries.iter().any(is_copied).then_some(known.clone());
        for spec in &plan.derived.specs {
            left = left.map(|known| left_over(plan, &known, spec)).transpose()?.flatten();
        }
        carried.extend(left);
    }
    plan.derived.specs.splice(0..0, carried);
    Ok(())
}

/// Returns the kinds of datasets of `keys` that the index group still has.
fn left_datasets(schema: &Schema, keys: &KeySpec) -> KeyDatasets {
    let KeyDatasets { seq, counts, offsets } = keys.datasets;
    let Some(named) = keys.columns.last().filter(|named| has_column(schema, named.as_bytes())) else {
        return keys.datasets;
    };
    let has = |ending: &str| has_column(schema, format!("{named}{ending}").as_bytes());
    KeyDatasets { seq: seq && has(".seq"), counts: counts && has(".seq_cnt"), offsets: offsets && has(".offsets") }
}

fn has_column(schema: &Schema, path: &[u8]) -> bool {
    schema.entries.iter().any(|entry| matches!(entry.role, Role::Column(_)) && entry.path == path)
}

/// Leaves out the groups of a union from inputs that lack the index group of `keys`, which counts no events of theirs.
fn skip_other_inputs(schema: &Schema, keys: &mut KeySpec) {
    // Without its index group, the key cannot be extended, which an append refuses.
    let Ok(KeyGroups { keyed, .. }) = key_groups(schema, keys) else { return };
    let holders = |columns: &[ColumnIndex]| -> HashSet<usize> {
        let facts = schema.columns[columns[0] as usize].facts.iter().enumerate();
        facts.filter(|(_, fact)| fact.template != ABSENT).map(|(input, _)| input).collect()
    };
    let [(_, of_index), others @ ..] = &keyed[..] else { return };
    let of_index = holders(of_index);
    let others = others.iter().filter(|(_, columns)| holders(columns).is_disjoint(&of_index));
    keys.skip.extend(others.map(|(group, _)| globset::escape(&String::from_utf8_lossy(group))));
}

/// Returns a difference for each kind of dataset in the inputs that raddle computed from all rows of one file, such as
/// partition keys, unless `specs` recompute it. In groups that `specs` leave out, datasets with names
/// of keys also count, whichever program wrote them.
///
/// # Errors
/// If specs of keys do not fit the inputs.
pub fn stale(
    schema: &Schema,
    of_inputs: &[DerivedSpec],
    specs: &[DerivedSpec],
    inputs: u32,
) -> Result<Vec<Difference>> {
    let again = specs.iter().map(|spec| maker(schema, spec)).collect::<Result<Vec<_>>>()?;
    let mut differences = Vec::new();
    let left_out = specs.iter().filter(|spec| !of_inputs.contains(spec)).map(|spec| (spec, true));
    for (spec, is_asked_for) in of_inputs.iter().map(|spec| (spec, false)).chain(left_out) {
        let is_stale = |entry: &&SchemaEntry| {
            matches!(entry.role, Role::Column(_))
                && spec.makes(&entry.path)
                && !again.iter().any(|makes| makes(&entry.path))
                && !differences.iter().any(|known: &Difference| known.path == display_path(&entry.path))
        };
        let mut stale = schema.entries.iter().filter(is_stale);
        let Some(first) = stale.next() else { continue };
        let others = match stale.count() {
            0 => String::new(),
            others => format!(" ({others} more such datasets)"),
        };
        let is_left_out = is_asked_for || specs.iter().any(|spec| spec.makes(&first.path));
        let found = match spec {
            DerivedSpec::Keys(_) if is_left_out => {
                format!("partition keys of a group that gets none{others}; --exclude leaves them out")
            }
            DerivedSpec::Keys(keys) => {
                let columns = keys.columns.join(",");
                format!("partition keys, which count the events of one file{others}; --keys {columns} recreates them")
            }
            DerivedSpec::FirstValue(_) => {
                "a first value, which is that of one file; --exclude leaves it out".to_owned()
            }
        };
        differences.push(Difference {
            path: display_path(&first.path),
            kind: DifferenceKind::Meaning,
            expected: "values computed from the rows of all inputs".to_owned(),
            found,
            inputs: (0..inputs).collect(),
        });
    }
    Ok(differences)
}

/// Collective. Adds the columns that the plan's options request.
pub fn attach(plan: &mut MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<()> {
    for spec in plan.options.derived.clone() {
        match spec {
            DerivedSpec::Keys(spec) => attach_keys(plan, &spec, watch, ranks)?,
            DerivedSpec::FirstValue(spec) => {
                let found = constant_column(plan, &spec, watch).and_then(|column| add_constant(plan, column));
                ranks.agree("find the first value", found)?;
            }
        }
    }
    Ok(())
}

/// Tables of a key, the index first.
struct Tables {
    tables: Vec<KeyTable>,
    without: Vec<String>,
    unmatched_skips: Vec<String>,
}

fn attach_keys(plan: &mut MergePlan, spec: &KeySpec, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<()> {
    let started = std::time::Instant::now();
    let found = find_tables(plan, spec).map(|mut found| {
        let mut ids: Vec<IdTable> = found.tables.iter().map(|table| table.ids.clone()).collect();
        let domains = IdTable::set_domains(&mut ids);
        found.tables.iter_mut().zip(ids).for_each(|(table, ids)| table.ids = ids);
        let total_bytes = found.tables.iter().map(|table| table.ids.rows * table.ids.row_len_bytes()).sum();
        watch.observer.event(&Event::StageStarted { stage: Stage::Keys, total_bytes: Some(total_bytes) });
        (found, domains)
    });
    let (Tables { tables, without, unmatched_skips }, domains) = ranks.agree(JOIN, found)?;
    let (joined, store) = join_tables(plan, spec, &tables, &domains, watch, ranks)?;
    ranks.agree(JOIN, add_key_columns(plan, spec, &tables, joined, &Arc::new(store)))?;
    plan.derived.without = without;
    plan.derived.unmatched_skips = unmatched_skips;
    watch.observer.event(&Event::StageFinished { stage: Stage::Keys, elapsed_s: started.elapsed().as_secs_f64() });
    Ok(())
}

/// Collective. Joins all tables, and returns their events and the store of their runs.
///
/// # Errors
/// If ids are faulty: [`MergeError::KeyFaults`] with all faults, the same on every rank. Also if ids cannot be read.
fn join_tables(
    plan: &MergePlan,
    spec: &KeySpec,
    tables: &[KeyTable],
    domains: &[Domain],
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<(Vec<TableRuns>, RunStore)> {
    let by_input = spec.scope == KeyScope::Input;
    let (index_table, pool) = (&tables[0], open_pool(plan));
    let built = || -> Result<_> {
        let store = RunStore::new(Scratch::create(&plan.options.output)?);
        let starts = by_input.then_some(index_table.starts.as_slice());
        let mut reader = ColumnReader::new(plan, &pool);
        Ok((Index::build(plan, index_table.ids.clone(), starts, index_table.ids.width(), &mut reader, watch)?, store))
    };
    let (index, store) = ranks.agree(JOIN, built())?;
    // Ranks with more memory may have sorted the index as a whole, but all ranks must proceed in the same way.
    let is_disjoint = ranks.all_gather_u64(u64::from(index.is_disjoint()))?.into_iter().all(|disjoint| disjoint != 0);
    let allows_repeated = spec.repeated == RepeatedIds::First;
    let join = Join { plan, by_input, domains, watch };
    let with_index = !is_disjoint && !allows_repeated;
    let (joined, found) = join_collective(&join, tables, with_index, &index, &pool, &store, ranks)?;
    let mut faults: Vec<KeyFault> = Vec::new();
    if is_disjoint && !allows_repeated {
        faults.extend(index.repeated.map(|repeated| KeyFault {
            group: display_path(&index_table.group),
            kind: KeyFaultKind::Repeated,
            rows: repeated.count,
            first_row: repeated.row,
            ids: Vec::new(),
        }));
    }
    faults.extend(found);
    let completed = faults.iter_mut().try_for_each(|fault| complete(plan, &pool, index_table, fault, domains));
    ranks.agree(JOIN, completed)?;
    if faults.is_empty() { Ok((joined, store)) } else { Err(MergeError::KeyFaults { faults }) }
}

/// Reads the ids of a fault's first row if they are unknown, which is the case for rows of the index.
fn complete(
    plan: &MergePlan,
    pool: &InputPool,
    index_table: &KeyTable,
    fault: &mut KeyFault,
    domains: &[Domain],
) -> Result<()> {
    if fault.ids.is_empty() {
        let mut ids = Ids::new(index_table.ids.width());
        let rows = fault.first_row..fault.first_row + 1;
        index_table.ids.read(&mut ColumnReader::new(plan, pool), plan, rows, &mut Vec::new(), &mut ids)?;
        fault.ids = fault_of(index_table, fault.kind, fault.first_row, &ids, 0, domains).ids;
    }
    Ok(())
}

/// Finds the groups that have all columns of the key, the index first.
fn find_tables(plan: &MergePlan, spec: &KeySpec) -> Result<Tables> {
    let KeyGroups { keyed, without, unmatched_skips } = key_groups(&plan.schema, spec)?;
    let tables: Vec<KeyTable> =
        keyed.into_iter().map(|(group, keys)| key_table(plan, group, &keys)).collect::<Result<_>>()?;
    let of_index = tables[0].ids.row_elements();
    if let Some(table) = tables.iter().find(|table| table.ids.row_elements() != of_index) {
        return Err(MergeError::Object {
            object: display_path(&table.group),
            reason: format!(
                "has ids of {:?} numbers per row, but the index group {} has {of_index:?}; leave it out (--key-skip)",
                table.ids.row_elements(),
                display_path(&tables[0].group)
            ),
        });
    }
    Ok(Tables { tables, without, unmatched_skips })
}

fn key_table(plan: &MergePlan, group: Vec<u8>, keys: &[ColumnIndex]) -> Result<KeyTable> {
    let named = keys[keys.len() - 1];
    Ok(KeyTable { ids: IdTable::of(plan, keys)?, starts: recorded_starts(plan, named)?, named, group })
}

/// Returns the first row of each recorded input of a column that is read, followed by the total.
fn recorded_starts(plan: &MergePlan, column: ColumnIndex) -> Result<Vec<u64>> {
    let path = plan.schema.column_path(column);
    let grown = plan.growth.as_ref().and_then(|growth| growth.stored.as_ref());
    let Some(stored) = plan.carried.as_ref().or(grown) else { return Ok(starts_of(plan, column)) };
    let known = stored.datasets.get(path).map(|known| known.row_starts.clone()).filter(|starts| !starts.is_empty());
    let mut starts = known.ok_or_else(|| MergeError::Object {
        object: display_path(path),
        reason: "differs from what was written; run raddle verify".to_owned(),
    })?;
    let new = plan.schema.columns[column as usize].facts.iter().skip(1).filter(|_| grown.is_some());
    for fact in new {
        starts.push(starts.last().copied().unwrap_or(0) + fact.rows);
    }
    Ok(starts)
}

/// Returns the first row of each input of the plan, followed by the total.
fn starts_of(plan: &MergePlan, column: ColumnIndex) -> Vec<u64> {
    let mut starts = vec![0];
    for fact in plan.schema.columns[column as usize].facts.iter() {
        starts.push(starts.last().copied().unwrap_or(0) + fact.rows);
    }
    starts
}

fn add_key_columns(
    plan: &mut MergePlan,
    spec: &KeySpec,
    tables: &[KeyTable],
    joined: Vec<TableRuns>,
    store: &Arc<RunStore>,
) -> Result<()> {
    let inputs = plan.inputs.len();
    let index_rows = tables[0].ids.rows;
    let in_first = |rows: u64| std::iter::once(rows).chain(std::iter::repeat_n(0, inputs.saturating_sub(1))).collect();
    let mut new = Vec::new();
    // With two specs, both compute the datasets of the index group.
    let there: HashSet<Vec<u8>> =
        plan.derived.columns.keys().map(|&column| plan.schema.column_path(column).to_vec()).collect();
    for (number, (table, runs)) in tables.iter().zip(joined).enumerate() {
        let is_index = number == 0;
        let runs = Arc::new(runs);
        let stored = StoredRuns { table: Arc::clone(&runs), store: Arc::clone(store) };
        if !is_index {
            growth::check_continues(plan, tables[0].named, table, &stored, spec.datasets)?;
        }
        let rows = table.ids.rows;
        let events = if is_index { rows } else { runs.runs };
        let keyed = KeyedTable { group: display_path(&table.group), rows, events };
        if there.is_empty() || !plan.derived.tables.contains(&keyed) {
            plan.derived.tables.push(keyed);
        }
        let ascends = runs.descends_at.is_none();
        if let Some(first_row) = runs.descends_at {
            plan.derived.descending.push(KeyFault {
                group: display_path(&table.group),
                kind: KeyFaultKind::Descending,
                rows: rows - first_row,
                first_row,
                ids: Vec::new(),
            });
        }
        let starts = starts_of(plan, table.named);
        let named = plan.schema.column_path(table.named).to_vec();
        let mut add = |ending: &str, dims: Vec<u64>, rows: Vec<u64>, values: DerivedValues, starts, recorded| {
            let path = [named.as_slice(), ending.as_bytes()].concat();
            if there.contains(&path) {
                return;
            }
            let column = NewColumn { entry: entry(path), template: template(i64_class(), dims, None), rows };
            new.push((column, DerivedColumn { values, starts, recorded_starts: recorded }));
        };
        if spec.datasets.seq {
            // One number per row, even if an id consists of several.
            let mut dims = plan.columns[table.named as usize].dims.clone();
            dims.iter_mut().skip(1).for_each(|dim| *dim = 1);
            let per_input = plan.schema.columns[table.named as usize].facts.iter().map(|fact| fact.rows).collect();
            let values = if is_index { DerivedValues::OwnSeq } else { DerivedValues::Seq(stored.clone()) };
            add(".seq", dims, per_input, values, starts, Some(table.starts.clone()));
        }
        if spec.datasets.counts && ascends {
            let pairs = if is_index { rows } else { runs.runs };
            let values = if is_index { DerivedValues::OwnCounts } else { DerivedValues::Counts(stored.clone()) };
            add(".seq_cnt", vec![pairs, 2], in_first(pairs), values, vec![0], None);
        }
        if spec.datasets.offsets && ascends {
            let values = if is_index { DerivedValues::OwnSeq } else { DerivedValues::Offsets(stored) };
            add(".offsets", vec![index_rows + 1], in_first(index_rows + 1), values, vec![0], None);
        }
    }
    place(plan, new)
}

/// Adds computed columns, or extends them if the output is an existing file.
fn place(plan: &mut MergePlan, columns: Vec<(NewColumn, DerivedColumn)>) -> Result<()> {
    if plan.growth.is_some() {
        return growth::go_on(plan, columns);
    }
    let (new, derived): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let columns = plan.add_columns(new)?;
    plan.derived.columns.extend(columns.into_iter().zip(derived));
    Ok(())
}

fn entry(path: Vec<u8>) -> SchemaEntry {
    SchemaEntry {
        utf8: std::str::from_utf8(&path).is_ok_and(|path| !path.is_ascii()),
        path,
        role: Role::SoftLink(Vec::new()),
        attributes: Arc::from([]),
        attribute_order: CreationOrder::default(),
        comment: None,
    }
}

fn i64_class() -> Arc<TypeClass> {
    Arc::new(TypeClass::Integer {
        len_bytes: 8,
        order: ByteOrder::Little,
        signed: true,
        bits: BitRange { offset: 0, count: 64 },
        padding: (0, 0),
    })
}

/// Returns the template of an extensible dataset of `dims`, compressed with deflate.
fn template(class: Arc<TypeClass>, dims: Vec<u64>, fill: Option<FillValue>) -> Dataset {
    let mut max_dims = dims.clone();
    if let Some(first) = max_dims.first_mut() {
        *first = u64::MAX;
    }
    let (id, level) = DEFLATE;
    Dataset {
        dataspace: Dataspace::Simple { dims, max_dims },
        datatype: Datatype { class, committed: None },
        // No input has chunks of it that could be moved as stored.
        layout: Layout::Contiguous { address: None, len_bytes: 0 },
        fill: fill.unwrap_or_default(),
        filters: vec![Filter { id, optional: true, name: Vec::new(), parameters: vec![level] }],
    }
}

/// Adds a column to the index group that has the same element in all rows.
fn add_constant(plan: &mut MergePlan, column: ConstantColumn) -> Result<()> {
    let ConstantColumn { name, like, class, element } = column;
    let group = parent_path(plan.schema.column_path(like)).to_vec();
    let dims = plan.columns[like as usize].dims.clone();
    let rows = plan.schema.columns[like as usize].facts.iter().map(|fact| fact.rows).collect();
    let derived = DerivedColumn {
        values: DerivedValues::Constant(element),
        starts: starts_of(plan, like),
        recorded_starts: Some(recorded_starts(plan, like)?),
    };
    let new = NewColumn { entry: entry(child_path(&group, &name)), template: template(class, dims, None), rows };
    place(plan, vec![(new, derived)])
}
