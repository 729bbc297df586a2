//! Settings as source code, for programs that should set them permanently.

use raddle_tune::knob::{ALIGNMENT_THRESHOLD_BYTES, Knob, SettingValue, Settings};

/// Language of the source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C with HDF5's interface.
    C,
    /// Python with h5py.
    H5py,
    /// Python with netCDF4, with the names of the C functions in comments.
    Netcdf,
}

/// Returns source code for `settings` in `language`. Settings that it cannot express become comments.
pub fn source(settings: &Settings, language: Language) -> String {
    match language {
        Language::C => c(settings),
        Language::H5py => h5py(settings),
        Language::Netcdf => netcdf(settings),
    }
}

fn threshold(settings: &Settings) -> u64 {
    settings.whole(Knob::AlignmentThreshold).unwrap_or(ALIGNMENT_THRESHOLD_BYTES)
}

fn cache(settings: &Settings) -> Option<(Option<u64>, Option<u64>, Option<f64>)> {
    let cache = (
        settings.whole(Knob::ChunkCacheSlots),
        settings.whole(Knob::ChunkCache),
        settings.number(Knob::ChunkCachePreemption),
    );
    (cache != (None, None, None)).then_some(cache)
}

/// Returns comments on the settings that are not in `said`.
fn unsaid(settings: &Settings, said: &[Knob], mark: &str, indent: &str) -> String {
    let rest = settings.0.iter().filter(|(knob, _)| !said.contains(knob));
    let advice = |knob| match knob {
        Knob::AutoChunkCache => ": give each dataset a cache for one sweep through it, at most of this size",
        _ => "",
    };
    rest.map(|(knob, value)| format!("{indent}{mark} not set here: {knob}={value}{}\n", advice(*knob))).collect()
}

const CACHE: [Knob; 3] = [Knob::ChunkCache, Knob::ChunkCacheSlots, Knob::ChunkCachePreemption];

fn c(settings: &Settings) -> String {
    let mut lines = String::new();
    let mut said = vec![Knob::Alignment, Knob::AlignmentThreshold];
    if let Some(bytes) = settings.whole(Knob::Alignment) {
        lines.push_str(&format!("    H5Pset_alignment(fapl, {}, {bytes});\n", threshold(settings)));
    }
    for (knob, function) in [
        (Knob::MetaBlock, "H5Pset_meta_block_size(fapl, {});"),
        (Knob::SmallDataBlock, "H5Pset_small_data_block_size(fapl, {});"),
        (Knob::Sieve, "H5Pset_sieve_buf_size(fapl, {});"),
        (Knob::PageBuffer, "H5Pset_page_buffer_size(fapl, {}, 0, 0);"),
    ] {
        said.push(knob);
        if let Some(value) = settings.whole(knob) {
            lines.push_str(&format!("    {}\n", function.replace("{}", &value.to_string())));
        }
    }
    if let Some((slots, bytes, preemption)) = cache(settings) {
        said.extend(CACHE);
        lines.push_str("    int elements;\n    size_t slots, bytes;\n    double preemption;\n");
        lines.push_str("    H5Pget_cache(fapl, &elements, &slots, &bytes, &preemption);\n");
        let or = |value: Option<String>, name: &str| value.unwrap_or_else(|| name.to_owned());
        let (slots, bytes) = (slots.map(|slots| slots.to_string()), bytes.map(|bytes| bytes.to_string()));
        let preemption = preemption.map(|preemption| preemption.to_string());
        let arguments = [or(slots, "slots"), or(bytes, "bytes"), or(preemption, "preemption")].join(", ");
        lines.push_str(&format!("    H5Pset_cache(fapl, elements, {arguments});\n"));
    }
    if settings.whole(Knob::MetadataCache).is_some() || settings.is_on(Knob::DeferFlush) {
        said.extend([Knob::MetadataCache, Knob::DeferFlush]);
        lines.push_str("    H5AC_cache_config_t mdc;\n    mdc.version = H5AC__CURR_CACHE_CONFIG_VERSION;\n");
        lines.push_str("    H5Pget_mdc_config(fapl, &mdc);\n    mdc.set_initial_size = 1;\n");
        if let Some(bytes) = settings.whole(Knob::MetadataCache) {
            lines.push_str(&format!("    mdc.initial_size = {bytes};\n"));
            lines.push_str("    if (mdc.max_size < mdc.initial_size) mdc.max_size = mdc.initial_size;\n");
        }
        if settings.is_on(Knob::DeferFlush) {
            lines.push_str("    mdc.evictions_enabled = 0;\n    mdc.incr_mode = H5C_incr__off;\n");
            lines.push_str("    mdc.flash_incr_mode = H5C_flash_incr__off;\n    mdc.decr_mode = H5C_decr__off;\n");
        }
        lines.push_str("    H5Pset_mdc_config(fapl, &mdc);\n");
    }
    if let Some(SettingValue::Text(bound)) = settings.get(Knob::Libver) {
        said.push(Knob::Libver);
        let bound = bound.to_uppercase();
        lines.push_str(&format!("    H5Pset_libver_bounds(fapl, H5F_LIBVER_{bound}, H5F_LIBVER_LATEST);\n"));
    }
    if settings.is_on(Knob::CollectiveMetadata) {
        said.push(Knob::CollectiveMetadata);
        lines.push_str("#ifdef H5_HAVE_PARALLEL\n    H5Pset_all_coll_metadata_ops(fapl, 1);\n");
        lines.push_str("    H5Pset_coll_metadata_write(fapl, 1);\n#endif\n");
    }
    lines.push_str(&unsaid(settings, &said, "//", "    "));
    format!(
        "#include <hdf5.h>\n\n/* A file access property list for H5Fcreate and H5Fopen; H5Pclose it afterwards. */\n\
         hid_t tuned_file_access(void) {{\n    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);\n{lines}    return fapl;\n}}\n"
    )
}

fn h5py(settings: &Settings) -> String {
    let mut arguments = String::new();
    let mut said = vec![Knob::Alignment, Knob::AlignmentThreshold];
    let mut add = |name: &str, value: String| arguments.push_str(&format!("    {name}={value},\n"));
    if let Some(bytes) = settings.whole(Knob::Alignment) {
        add("alignment_threshold", threshold(settings).to_string());
        add("alignment_interval", bytes.to_string());
    }
    for (knob, name) in [
        (Knob::MetaBlock, "meta_block_size"),
        (Knob::ChunkCache, "rdcc_nbytes"),
        (Knob::ChunkCacheSlots, "rdcc_nslots"),
        (Knob::PageBuffer, "page_buf_size"),
    ] {
        said.push(knob);
        if let Some(value) = settings.whole(knob) {
            add(name, value.to_string());
        }
    }
    said.push(Knob::ChunkCachePreemption);
    if let Some(value) = settings.number(Knob::ChunkCachePreemption) {
        add("rdcc_w0", value.to_string());
    }
    if let Some(bytes) = settings.whole(Knob::FilePage) {
        said.push(Knob::FilePage);
        add("fs_strategy", "\"page\"".to_owned());
        add("fs_page_size", bytes.to_string());
    }
    if let Some(SettingValue::Text(bound)) = settings.get(Knob::Libver) {
        said.push(Knob::Libver);
        add("libver", format!("(\"{bound}\", \"latest\")"));
    }
    format!(
        "import h5py\n\n# h5py.File(name, mode, **tuned)\ntuned = dict(\n{arguments})\n{}",
        unsaid(settings, &said, "#", "")
    )
}

fn netcdf(settings: &Settings) -> String {
    let mut lines = String::new();
    if let Some(bytes) = settings.whole(Knob::Alignment) {
        let threshold = threshold(settings);
        lines.push_str(&format!(
            "netCDF4.set_alignment({threshold}, {bytes})  # C: nc_set_alignment({threshold}, {bytes})\n"
        ));
    }
    if let Some((slots, bytes, preemption)) = cache(settings) {
        let values = [
            ("size", bytes.map(|bytes| bytes.to_string())),
            ("nelems", slots.map(|slots| slots.to_string())),
            ("preemption", preemption.map(|preemption| preemption.to_string())),
        ];
        let values: Vec<String> =
            values.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        lines.push_str(&format!("netCDF4.set_chunk_cache({})  # C: nc_set_chunk_cache\n", values.join(", ")));
    }
    let said = [Knob::Alignment, Knob::AlignmentThreshold, CACHE[0], CACHE[1], CACHE[2]];
    format!("import netCDF4\n\n# For files opened afterwards.\n{lines}{}", unsaid(settings, &said, "#", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_language_cannot_say_is_a_comment() {
        let settings = Settings::default()
            .and(Knob::Alignment, SettingValue::Whole(1 << 20))
            .and(Knob::ChunkCache, SettingValue::Whole(1 << 24))
            .and(Knob::MetaBlock, SettingValue::Whole(65536));
        for language in [Language::C, Language::H5py, Language::Netcdf] {
            let settings = settings.clone().and(Knob::AutoChunkCache, SettingValue::Whole(1 << 26));
            let text = source(&settings, language);
            assert!(text.contains("not set here: auto_chunk_cache=67108864: give each dataset a cache"), "{text}");
        }
        let text = source(&settings, Language::Netcdf);
        assert!(text.contains("netCDF4.set_alignment(65536, 1048576)"), "{text}");
        assert!(text.contains("netCDF4.set_chunk_cache(size=16777216)"), "{text}");
        assert!(text.contains("# not set here: meta_block=65536"), "{text}");
        let text = source(&settings, Language::H5py);
        assert!(text.contains("meta_block_size=65536") && !text.contains("not set here"), "{text}");
        let text = source(&settings, Language::C);
        assert!(text.contains("H5Pset_cache(fapl, elements, slots, 16777216, preemption);"), "{text}");
    }
}
