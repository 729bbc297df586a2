//! Printed output as transcripts: help, usage errors, and runs on generated files.
//!
//! After a change of messages or help, run `TRYCMD=overwrite cargo test -p raddle-cli --test transcripts` and check the
//! difference.

#[test]
fn transcripts() {
    let cases = trycmd::TestCases::new();
    cases.env("COLUMNS", "100").env("NO_COLOR", "1").env("LC_ALL", "C");
    cases.case("tests/transcripts/*.trycmd");
}
