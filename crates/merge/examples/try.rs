use raddle_core::{cancel::CancelToken, progress::Silent};
use raddle_merge::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let ins: Vec<std::path::PathBuf> = a[1..].iter().map(Into::into).collect();
    let mut o = MergeOptions::new(&a[0]);
    o.force = true;
    o.memory_limit_bytes = 512 << 20;
    if let Ok(c) = std::env::var("C") {
        o.compress = match c.as_str() {
            "fast" => Compress::Fast,
            "none" => Compress::None,
            "keep" => Compress::Keep,
            _ => Compress::Balanced,
        }
    }
    if let Ok(c) = std::env::var("J") {
        o.jobs = c.parse().unwrap();
    }
    let cancel = CancelToken::new();
    let w = Watch { observer: &Silent, cancel: &cancel };
    let p = match plan(&ins, &o, &w) {
        Ok(p) => p,
        Err(MergeError::Differences { differences }) => {
            for d in differences {
                println!("{d:?}");
            }
            std::process::exit(3)
        }
        Err(MergeError::BadInputs { bad }) => {
            for d in bad {
                println!("{}", d.error);
            }
            std::process::exit(3)
        }
        Err(e) => {
            println!("{e}");
            std::process::exit(3)
        }
    };
    println!(
        "plan {} columns {} arrays {} tiles scan {:.3}s",
        p.columns.len(),
        p.tiles.arrays.len(),
        p.tiles.tile_count(),
        p.scan_s
    );
    for d in &p.warnings {
        println!("warning {d:?}");
    }
    match merge(&p, &w) {
        Ok(r) => println!("{}", serde_json::to_string_pretty(&r).unwrap()),
        Err(e) => {
            println!("ERROR {e} {e:?}");
            std::process::exit(5)
        }
    }
    if std::env::var("V").is_ok() {
        println!("{:?}", verify(std::path::Path::new(&a[0]), &ins, &o, &w));
    }
}
