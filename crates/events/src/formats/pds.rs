//! Packed data streams: opening, writing, and merging record by record.

use super::{EventCodec, EventFile, Format, MergeJob, OpenOptions, OutputLayout, WriteJob, WrittenEvents};
use crate::convert::ConversionReport;
use crate::error::Result;
use crate::pds::{PdsOptions, PdsSink, PdsSource, is_pds, merge};
use raddle_columns::source::Source;
use std::path::Path;
use std::time::Instant;

/// Format of packed data streams.
pub(super) struct PdsFormat;

impl Format for PdsFormat {
    fn title(&self) -> &'static str {
        "a packed data stream"
    }

    fn is_match(&self, first: &[u8]) -> bool {
        is_pds(first)
    }

    fn open(&self, path: &Path, _options: &OpenOptions) -> Result<Box<dyn EventFile>> {
        Ok(Box::new(PdsSource::open(path)?))
    }

    fn layouts(&self) -> &'static [OutputLayout] {
        &[OutputLayout::Pds]
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<WrittenEvents> {
        let options = PdsOptions { codec: job.options.framework_codec()?, replace: job.replace };
        let sink = PdsSink::begin_collective(job.output, &job.schema(), options, job.ranks)?;
        job.warn_of_counted_ids();
        let (converted, summary) = job.fill(sink, job.convert)?;
        Ok(job.report(summary.events, summary.len_bytes, converted))
    }

    fn merge(&self, job: &MergeJob<'_>) -> Result<Option<WrittenEvents>> {
        let streams = job.inputs.iter().map(|path| Ok(PdsSource::open(path)?)).collect::<Result<Vec<_>>>();
        let streams = job.agree("open the inputs", streams)?;
        // Copying is limited by the disk, so a single rank does it.
        let copied = if job.ranks.rank() == 0 { copy(job, &streams).map(Some) } else { Ok(None) };
        job.agree("copy the streams", copied)
    }
}

/// Copies the records of streams.
fn copy(job: &MergeJob<'_>, streams: &[PdsSource]) -> Result<WrittenEvents> {
    let started = Instant::now();
    let summary = merge(streams, job.output, job.replace, job.watch.observer, job.watch.cancel)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    Ok(WrittenEvents {
        output: job.output.to_path_buf(),
        layout: OutputLayout::Pds.name(),
        events: summary.events,
        products: streams.first().map_or(0, |stream| stream.schema().products.len() as u64),
        len_bytes: summary.len_bytes,
        datasets: None,
        chunks: None,
        left_out: Vec::new(),
        converted: ConversionReport {
            entries: summary.events,
            elapsed_s,
            commit_s: elapsed_s,
            ..ConversionReport::default()
        },
    })
}

impl EventFile for PdsSource {
    fn description(&self) -> String {
        let (codec, kind) = (EventCodec::from(self.codec()), self.serialization());
        format!("packed data stream, compression {codec}, serialisation {kind}")
    }
}
