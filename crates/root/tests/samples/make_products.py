"""Makes products.root (split) and products_unsplit.root in its folder, as make_samples.py does: `python make_products.py`.

Both have the same entries of the same objects. For every product NAME that raddle puts together, products.root has the bytes that ROOT's
`TClass::WriteBuffer` made of the same object, in the branch `bytes_of_NAME`. `python make_products.py read FILE`, with an HDF5 file that
`raddle events convert products.root -o FILE --whole --layout product --serialize root` wrote of these products, reads every object back
by `TClass::ReadBuffer` and compares what `WriteBuffer` makes of it.
"""

import sys
import tempfile
from pathlib import Path

import ROOT
from make_samples import HERE, load

CLASSES = """
#pragma once
#include <map>
#include <string>
#include <vector>
#include "TClonesArray.h"
#include "TNamed.h"
#include "TObject.h"
#include "TRef.h"
#include "TString.h"
struct Hit { int channel; float time; std::vector<short> adc; };
struct Cell : public TObject { int id = 0; float size = 0; TString tag; ClassDef(Cell, 3) };
struct Early { int n = 0; virtual ~Early() {} ClassDef(Early, 1) };
struct Origin {
  double x = 0, y = 0;
  Double32_t error = 0;
  Double32_t angle = 0; //[-4,4,20]
  virtual ~Origin() {}
  ClassDef(Origin, 2)
};
struct Shape {
  int count = 0;
  float* edges = nullptr; //[count]
  Shape() {}
  Shape(const Shape& other) { set(other.count, other.edges); }
  Shape& operator=(const Shape& other) { set(other.count, other.edges); return *this; }
  ~Shape() { delete[] edges; }
  void set(int n, const float* values) {
    float* made = n ? new float[n] : nullptr;
    for (int k = 0; k < n; ++k) made[k] = values[k];
    delete[] edges;
    edges = made;
    count = n;
  }
};
struct Vertex : public Origin {
  std::string label; TString names[2]; std::string words[2]; bool good = false;
  Shape outer; Shape inner; Hit first; Hit second; std::vector<Hit> seeds;
};
struct Event : public TNamed {
  unsigned char kind = 0; Long64_t number = 0; int grid[2][3] = {};
  Vertex vertex; std::vector<Hit> hits; std::vector<Vertex> vertices; std::map<int, Hit> by_id; std::vector<Shape> shapes;
  std::vector<std::vector<Hit>> groups; std::vector<TString> tags; std::vector<std::string> words; std::vector<bool> flags;
  TClonesArray* cells; //->
  TClonesArray more;
  Event() : cells(new TClonesArray("Cell")), more("Cell") {}
  ~Event() { delete cells; }
  ClassDef(Event, 4)
};
struct Pointing { int n = 0; TRef ref; };
struct Holding { int n = 0; TNamed* named = nullptr; };
"""

PARTS = ["Hit", "Cell", "Early", "Origin", "Shape", "Vertex", "Event", "Pointing", "Holding", "std::pair<int,Hit>"]
COLLECTIONS = ["vector<Hit>", "vector<Vertex>", "vector<Shape>", "vector<Cell>", "map<int,Hit>", "vector<std::vector<Hit>>", "vector<TString>"]
LINKS = "".join(f"#pragma link C++ class {name}+;\n" for name in [*PARTS, *[f"std::{name}" for name in COLLECTIONS]])

# Products, and their classes.
PRODUCTS = {
    "event": "Event", "vertices": "vector<Vertex>", "cells": "vector<Cell>", "by_id": "map<int,Hit>", "vertex": "Vertex", "cell": "Cell",
    "early": "Early", "named": "TNamed",
}

FILL = """
Hit make_hit(int i) {
    Hit hit{i, i * 0.5f, {}};
    for (int k = 0; k < i % 4; ++k) hit.adc.push_back(100 * i + k);
    return hit;
}

Shape make_shape(int i) {
    std::vector<float> edges;
    for (int k = 0; k < i % 3; ++k) edges.push_back(i + k);
    Shape shape;
    shape.set(edges.size(), edges.data());
    return shape;
}

Vertex make_vertex(int i) {
    Vertex made;
    made.x = i; made.y = -i; made.error = i / 3.0; made.angle = i / 7.0; made.label = std::string(i % 3, 'v');
    for (int k = 0; k < 2; ++k) { made.names[k] = TString('n', k + i % 2); made.words[k] = std::string(k, 'w'); }
    made.good = i % 2; made.outer = make_shape(i); made.inner = make_shape(i + 1);
    made.first = make_hit(i); made.second = make_hit(i + 1);
    for (int k = 0; k < i % 3; ++k) made.seeds.push_back(make_hit(k));
    return made;
}

void set_cell(Cell& cell, int i) { cell.id = i; cell.size = i / 2.0f; cell.tag = TString('t', i % 3); cell.SetUniqueID(1000 + i); }

std::vector<char> written(TClass* of, void* object) {
    TBufferFile buffer(TBuffer::kWrite);
    of->WriteBuffer(buffer, object);
    return std::vector<char>(buffer.Buffer(), buffer.Buffer() + buffer.Length());
}

// What ROOT writes of an object that it reads, in hexadecimal digits.
std::string read_and_written(const char* name, const std::string& bytes) {
    TVirtualStreamerInfo::SetStreamMemberWise(false);
    TClass* of = TClass::GetClass(name);
    void* object = of->New();
    std::string own = bytes;
    TBufferFile buffer(TBuffer::kRead, own.size(), own.data(), kFALSE);
    of->ReadBuffer(buffer, object);
    if (buffer.Length() != (int) own.size()) return "not read to its end";
    if (std::string(name) == "Event") {
        ((Event*) object)->cells->BypassStreamer(kFALSE);
        ((Event*) object)->more.BypassStreamer(kFALSE);
    }
    std::string digits;
    for (char byte : written(of, object)) digits += TString::Format("%02x", (unsigned char) byte).Data();
    return digits;
}

void fill(const char* path, int split, bool with_bytes) {
    TFile file(path, "RECREATE", "", 207);
    TTree* tree = new TTree("events", "products");
    Event* event = new Event; std::vector<Vertex> vertices; std::vector<Cell> cells; std::map<int, Hit> by_id;
    Vertex vertex; Cell cell; Early early; TNamed named; Pointing pointing; Holding holding; TNamed held("held", "here");
    holding.named = &held;
    const int size = 4000;
    tree->Branch("event", &event, size, split);
    tree->Branch("vertices", &vertices, size, split);
    tree->Branch("cells", &cells, size, split);
    tree->Branch("by_id", &by_id, size, split);
    tree->Branch("vertex.", &vertex, size, split);
    tree->Branch("cell", &cell, size, split);
    tree->Branch("early", &early, size, split);
    tree->Branch("named", &named, size, split);
    tree->Branch("pointing", &pointing, size, split);
    tree->Branch("holding", &holding, size, split);
    std::vector<std::string> names = {"event", "vertices", "cells", "by_id", "vertex", "cell", "early", "named"};
    std::vector<const char*> classes = {"Event", "vector<Vertex>", "vector<Cell>", "map<int,Hit>", "Vertex", "Cell", "Early", "TNamed"};
    std::vector<void*> objects = {event, &vertices, &cells, &by_id, &vertex, &cell, &early, &named};
    std::vector<std::vector<char>> bytes(names.size());
    for (size_t k = 0; with_bytes && k < names.size(); ++k) tree->Branch(("bytes_of_" + names[k]).c_str(), &bytes[k], 32000, 0);
    for (int i = 0; i < 7; ++i) {
        event->SetName(TString::Format("event %d", i)); event->SetTitle(i == 5 ? std::string(300, 't').c_str() : "title");
        event->kind = i; event->number = (1LL << 40) + i; event->vertex = make_vertex(i);
        for (int k = 0; k < 6; ++k) event->grid[k / 3][k % 3] = 10 * i + k;
        event->hits.clear(); event->vertices.clear(); event->by_id.clear(); event->shapes.clear();
        event->groups.clear(); event->tags.clear(); event->words.clear(); event->flags.clear();
        event->cells->Clear("C"); event->more.Clear("C"); vertices.clear(); cells.clear(); by_id.clear();
        for (int k = 0; k < i % 4; ++k) {
            event->hits.push_back(make_hit(i + k)); event->vertices.push_back(make_vertex(i + k));
            event->by_id[k] = make_hit(k); event->shapes.push_back(make_shape(i + k));
            event->groups.push_back(std::vector<Hit>(k, make_hit(k))); event->tags.push_back(TString('g', k));
            event->words.push_back(std::string(k, 'o')); event->flags.push_back(k % 2);
            set_cell(*(Cell*) event->cells->ConstructedAt(k), i + k); set_cell(*(Cell*) event->more.ConstructedAt(k), k);
            vertices.push_back(make_vertex(i + k)); cells.emplace_back(); set_cell(cells.back(), i + k);
            by_id[k + i] = make_hit(i + k);
        }
        vertex = make_vertex(i); set_cell(cell, i); early.n = i; named.SetName(TString::Format("named %d", i));
        pointing.n = i; holding.n = i;
        // Object by object.
        TVirtualStreamerInfo::SetStreamMemberWise(false); event->cells->BypassStreamer(kFALSE); event->more.BypassStreamer(kFALSE);
        for (size_t k = 0; k < names.size(); ++k) bytes[k] = written(TClass::GetClass(classes[k]), objects[k]);
        TVirtualStreamerInfo::SetStreamMemberWise(true); event->cells->BypassStreamer(kTRUE); event->more.BypassStreamer(kTRUE);
        tree->Fill();
    }
    tree->FlushBaskets();
    file.WriteTObject(tree);
    file.Close();
}
"""


def read(path):
    import h5py

    with h5py.File(path) as file:
        lumi = file["Lumi"]
        for name, dataset in zip(lumi.attrs["ProductNames"].astype(str), lumi.attrs["ProductDatasets"].astype(str)):
            ends, stored, start = lumi[dataset + "_sz"][()], lumi[dataset][()], 0
            for entry, end in enumerate(ends):
                bytes_of = stored[start:end].tobytes()
                again = bytes.fromhex(str(ROOT.read_and_written(PRODUCTS[name], bytes_of)))
                # ROOT states the version of this class, raddle its checksum.
                is_same = again[6:] == bytes_of[10:] if name == "early" else again == bytes_of
                print(name, entry, "same" if is_same else f"{bytes_of.hex()} becomes {again.hex()}")
                start = end


def main():
    with tempfile.TemporaryDirectory() as folder:
        load(Path(folder), CLASSES, LINKS, FILL)
        if sys.argv[1:2] == ["read"]:
            return read(sys.argv[2])
        ROOT.fill(str(HERE / "products.root"), 99, True)
        ROOT.fill(str(HERE / "products_unsplit.root"), 0, False)
    return None


if __name__ == "__main__":
    main()
