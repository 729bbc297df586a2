"""Makes the ROOT files in its folder, by ROOT itself: `pip install --pre root==0.1a12` (ROOT 6.40, CPython 3.12 or 3.13; a
compiler is needed for the dictionary), then `python make_samples.py`. They are committed: the tests need no ROOT.

packed_events.root and packed_batches.root are not ROOT's alone: HEP-CCE's root_serialization wrote them, by
`threaded_io_test -s TestProductsSource -n 10 -t 1 -l 1 -o RootEventOutputer=packed_events.root` and
`-o RootBatchEventsOutputer=packed_batches.root:batchSize=4`.

Every other file has the same 12 entries of the same objects; ../trees.rs computes their values by the same formulas.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ROOT

HERE = Path(__file__).parent

CLASSES = """
#pragma once
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
struct Hit { int channel; float time; double energy; std::vector<short> adc; };
struct Point { double x, y; virtual ~Point() {} };
struct Cluster : public Point { float shape[3]; int grid[2][2]; std::string label; Hit seed; };
struct Track { float px; std::vector<Hit> hits; std::string name; std::map<int, float> weights; };
"""

LINKS = """
#pragma link C++ struct Hit+;
#pragma link C++ struct Point+;
#pragma link C++ struct Cluster+;
#pragma link C++ struct Track+;
#pragma link C++ class std::vector<Hit>+;
#pragma link C++ class std::vector<Cluster>+;
#pragma link C++ class std::vector<Track>+;
#pragma link C++ class std::vector<std::vector<Hit>>+;
#pragma link C++ class std::map<std::string, std::vector<float>>+;
#pragma link C++ class std::vector<std::pair<int, double>>+;
#pragma link C++ class std::vector<std::vector<std::string>>+;
#pragma link C++ class std::set<long>+;
#pragma link C++ class std::list<double>+;
"""

FILL = """
Hit make_hit(int i) {
    Hit hit{i, i * 0.5f, i * 0.25, {}};
    for (int k = 0; k < i % 4; ++k) hit.adc.push_back(100 * i + k);
    return hit;
}

void fill(const char* path, int split, bool memberwise, int compression, bool embedded) {
    TVirtualStreamerInfo::SetStreamMemberWise(memberwise);
    TFile file(path, "RECREATE", "", compression);
    TTree* tree = new TTree("events", "sample");
    int n; float jets[8]; double pair[2]; char text[64]; struct { unsigned run, lumi; ULong64_t event; } id;
    Hit hit; Cluster cluster; std::string name;
    std::vector<float> pts; std::vector<bool> flags; std::vector<std::string> words;
    std::vector<Hit> hits; std::vector<Cluster> clusters; std::vector<Track> tracks; std::vector<std::vector<Hit>> groups;
    std::map<int, float> weights; std::map<std::string, std::vector<float>> shapes; std::set<long> ids; std::list<double> times;
    std::vector<std::pair<int, double>> pairs; std::vector<std::vector<std::string>> tables;
    const int size = 400;
    tree->Branch("n", &n, "n/I", size);
    tree->Branch("jets", jets, "jets[n]/F", size);
    tree->Branch("pair", pair, "pair[2]/D", size);
    tree->Branch("text", text, "text/C", size);
    tree->Branch("id", &id, "run/i:lumi/i:event/l", size);
    tree->Branch("hit", &hit, size, split);
    tree->Branch("cluster", &cluster, size, split);
    tree->Branch("name", &name, size, split);
    tree->Branch("pts", &pts, size, split);
    tree->Branch("flags", &flags, size, split);
    tree->Branch("words", &words, size, split);
    tree->Branch("hits", &hits, size, split);
    tree->Branch("clusters", &clusters, size, split);
    tree->Branch("tracks", &tracks, size, split);
    tree->Branch("groups", &groups, size, split);
    tree->Branch("weights", &weights, size, split);
    tree->Branch("shapes", &shapes, size, split);
    tree->Branch("ids", &ids, size, split);
    tree->Branch("times", &times, size, split);
    tree->Branch("pairs", &pairs, size, split);
    tree->Branch("tables", &tables, size, split);
    for (int i = 0; i < 12; ++i) {
        n = i % 5;
        for (int k = 0; k < n; ++k) jets[k] = i + 0.125f * k;
        pair[0] = i; pair[1] = -i;
        std::snprintf(text, sizeof text, "entry %d", i);
        id = {1, 2, (1ULL << 40) + i};
        hit = make_hit(i);
        auto make_cluster = [](int i) {
            Cluster made;
            made.x = i; made.y = 2.0 * i;
            for (int k = 0; k < 3; ++k) made.shape[k] = i + k;
            for (int k = 0; k < 4; ++k) made.grid[k / 2][k % 2] = 10 * i + k;
            made.label = std::string(i % 3, 'c'); made.seed = make_hit(i + 1);
            return made;
        };
        cluster = make_cluster(i);
        name = i == 7 ? std::string(300, 'n') : "name " + std::to_string(i);
        pts.clear(); flags.clear(); words.clear(); hits.clear(); clusters.clear(); tracks.clear();
        groups.clear(); weights.clear(); shapes.clear(); ids.clear(); times.clear(); pairs.clear(); tables.clear();
        for (int k = 0; k < i % 4; ++k) {
            pts.push_back(i + 0.5f * k);
            flags.push_back((i + k) % 2);
            words.push_back(std::string(k, 'w'));
            hits.push_back(make_hit(i + k));
            clusters.push_back(make_cluster(i + k));
            Track track{0.5f * k, {}, "track" + std::to_string(k), {}};
            for (int j = 0; j < k; ++j) { track.hits.push_back(make_hit(i + j)); track.weights[j] = i + j; }
            tracks.push_back(track);
            groups.push_back(std::vector<Hit>(k, make_hit(k)));
            weights[k] = i * k;
            shapes[std::string(1, 'a' + k)] = std::vector<float>(k, i);
            ids.insert(1000L * i + k);
            times.push_back(i / 4.0 + k);
            pairs.push_back({i, 1.5 * k});
            tables.push_back(std::vector<std::string>(k, std::to_string(i)));
        }
        tree->Fill();
    }
    // Without this call the baskets that are being filled stay part of the tree.
    if (!embedded) tree->FlushBaskets();
    file.WriteTObject(tree);
    file.Close();
}
"""


def load(folder, classes, links, fill):
    """Compiles classes with their dictionary in ``folder``, and loads them and functions."""
    (folder / "classes.h").write_text(classes)
    (folder / "links.h").write_text(links)
    binaries = Path(ROOT.__file__).parent / "bin"
    environment = dict(os.environ, ROOTSYS=str(binaries.parent))
    rootcling = next(path for path in [binaries / "rootcling", Path(sys.executable).parent / "rootcling"] if path.exists())
    run = lambda *command: subprocess.run([str(part) for part in command], check=True, cwd=folder, env=environment)
    run(rootcling, "-f", "dictionary.cxx", "-s", "libclasses.so", "classes.h", "links.h")
    include = ROOT.gSystem.GetIncludePath().split()
    run("g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-o", "libclasses.so", "dictionary.cxx", "-I.", *[part.strip('"') for part in include])
    ROOT.gInterpreter.AddIncludePath(str(folder))
    ROOT.gSystem.Load(str(folder / "libclasses.so"))
    headers = ["classes.h", "TBufferFile.h", "TFile.h", "TTree.h", "TVirtualStreamerInfo.h"]
    ROOT.gInterpreter.Declare("".join(f'#include "{header}"\n' for header in headers) + fill)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        load(folder, CLASSES, LINKS, FILL)
        for name, split, memberwise, compression, embedded in [
            ("unsplit", 0, True, 505, False),
            ("objectwise", 0, False, 404, False),
            ("split", 99, True, 207, False),
            ("embedded", 99, True, 101, True),
        ]:
            ROOT.fill(str(HERE / f"{name}.root"), split, memberwise, compression, embedded)


if __name__ == "__main__":
    main()
