//! Built-in workloads: experiments of the papers, and workloads of raddle itself.

/// Names and contents of the built-in workloads.
const PRESETS: [(&str, &str); 9] = [
    ("tables", include_str!("../../workloads/tables.toml")),
    ("nova-2021", include_str!("../../workloads/nova-2021.toml")),
    ("occam-2005", include_str!("../../workloads/occam-2005.toml")),
    ("pidx-sc12", include_str!("../../workloads/pidx-sc12.toml")),
    ("hep-cce-2023", include_str!("../../workloads/hep-cce-2023.toml")),
    ("battle-2021", include_str!("../../workloads/battle-2021.toml")),
    ("battle-layout", include_str!("../../workloads/battle-layout.toml")),
    ("battle-metadata", include_str!("../../workloads/battle-metadata.toml")),
    ("battle-apps", include_str!("../../workloads/battle-apps.toml")),
];

/// Returns the text of a preset.
pub(super) fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// Returns the names of the presets.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::preset_names;
    use crate::workload::{Scale, Workload};

    #[test]
    fn presets_are_workloads_at_every_scale() {
        for name in preset_names() {
            let sizes = [Scale::Tiny, Scale::Small, Scale::Full].map(|scale| {
                let workload = Workload::named(name, scale).unwrap();
                assert_eq!(workload.name, name);
                workload.largest_run_len_bytes()
            });
            assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{name}: {sizes:?}");
            assert!(sizes[0] <= 16 << 20, "{name}: {sizes:?}");
        }
    }
}
