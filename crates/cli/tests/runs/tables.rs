//! Tables of plans and inspections for unusual files.

use crate::support::{make_several, outcome, raddle};

#[test]
fn a_group_has_one_line_however_its_datasets_lie() {
    let folder = tempfile::tempdir().unwrap();
    make_several(&folder.path().join("in.h5"), &["/g"], &["/a", "/g/x", "/z"], 1, 100);
    for command in ["plan", "inspect"] {
        let (code, stdout, stderr) = outcome(raddle(folder.path(), &[command, "in.h5"]));
        assert_eq!(code, 0, "{stderr}");
        let lines = |group: &str| stdout.lines().filter(|line| line.split_whitespace().next() == Some(group)).count();
        assert_eq!((lines("/"), lines("/g")), (1, 1), "{command}: {stdout}");
    }
}
