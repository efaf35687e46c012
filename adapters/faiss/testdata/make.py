#!/usr/bin/env python3
"""Makes the index files of the tests with FAISS, and what FAISS finds in them.

python3 make.py DIR        writes the indexes, expected.json and the golden
                           results of large graphs to DIR
python3 make.py --wide DIR writes the golden results of another version of FAISS
                           for the graphs in DIR
python3 make.py --read F Q prints what FAISS finds in the index F for the queries
                           in the JSON file Q, in the form of expected.json
"""
import gzip
import json
import os
import sys

import faiss
import numpy as np

D, N, K = 12, 60, 9
faiss.omp_set_num_threads(1)


def found(index, queries, k=K):
    scores, ids = index.search(np.asarray(queries, dtype="float32"), min(k, max(1, index.ntotal)))
    return {
        "dimension": index.d,
        "count": index.ntotal,
        "metric": index.metric_type,
        "scores": [[float(s) if i >= 0 else None for s, i in zip(r, q)] for r, q in zip(scores, ids)],
        "ids": ids.tolist(),
    }


def indexes():
    rng = np.random.RandomState(7)
    x = rng.standard_normal((N, D)).astype("float32")
    x[17] = x[3]
    x[41] = x[3]  # ties
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    own = (1000 + 7 * np.arange(N)[::-1]).astype("int64")
    queries = np.vstack([rng.standard_normal((4, D)), x[3:4]]).astype("float32")

    def added(index, rows=x, ids=None):
        if not index.is_trained:
            index.train(rows)
        if ids is None:
            index.add(rows)
        else:
            index.add_with_ids(rows, ids)
        return index

    def ivf(metric, lists, probes, quantizer=None):
        flat = faiss.IndexFlatIP if metric == faiss.METRIC_INNER_PRODUCT else faiss.IndexFlatL2
        q = quantizer or flat(D)
        index = faiss.IndexIVFFlat(q, D, lists, metric)
        index.cp.min_points_per_centroid = 1
        index.nprobe = probes
        index.quantizer_kept = q
        return index

    ip, l2 = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2
    sparse = ivf(l2, 40, 40)
    sparse.train(x)
    sparse.add(x[:6])
    direct = added(ivf(l2, 4, 2))
    direct.set_direct_map_type(faiss.DirectMap.Hashtable)
    hnsw = faiss.IndexHNSWFlat(D, 4, l2)
    hnsw.hnsw.efSearch = 64
    hnsw_ip = faiss.IndexHNSWFlat(D, 4, ip)
    hnsw_ip.hnsw.efSearch = 64
    narrow = faiss.IndexHNSWFlat(D, 4, l2)
    narrow.hnsw.efSearch = 9
    made = {
        "flat_ip": added(faiss.IndexFlatIP(D)),
        "flat_unit": added(faiss.IndexFlatIP(D), unit),
        "flat_l2": added(faiss.IndexFlatL2(D)),
        "flat_l1": added(faiss.IndexFlat(D, faiss.METRIC_L1)),
        "empty": faiss.IndexFlatL2(D),
        "idmap_ip": added(faiss.IndexIDMap(faiss.IndexFlatIP(D)), ids=own),
        "idmap2_l2": added(faiss.IndexIDMap2(faiss.IndexFlatL2(D)), ids=own),
        "hnsw_l2": added(hnsw),
        "hnsw_ip": added(hnsw_ip),
        "hnsw_narrow": added(narrow),
        "idmap_hnsw": added(faiss.IndexIDMap2(faiss.IndexHNSWFlat(D, 4, l2)), ids=own),
        "ivf_l2": added(ivf(l2, 5, 2)),
        "ivf_ip": added(ivf(ip, 5, 2), unit),
        "ivf_all": added(ivf(l2, 5, 5)),
        "ivf_ids": added(ivf(l2, 5, 3), ids=own),
        "ivf_direct": direct,
        "ivf_sparse": sparse,
        "ivf_hnsw": added(ivf(l2, 6, 3, faiss.IndexHNSWFlat(D, 4))),
        "idmap_ivf": added(faiss.IndexIDMap2(ivf(l2, 5, 3)), ids=own),
        "pq": added(faiss.IndexPQ(D, 4, 4)),
        "sq8": added(faiss.IndexScalarQuantizer(D, faiss.ScalarQuantizer.QT_8bit)),
        "pretransform": added(faiss.IndexPreTransform(faiss.RandomRotationMatrix(D, D), faiss.IndexFlatL2(D))),
        "pre_ivf": added(faiss.IndexPreTransform(faiss.RandomRotationMatrix(D, D), ivf(l2, 4, 4))),
        "spectral": added(faiss.IndexIVFSpectralHash(faiss.IndexFlatL2(D), D, 4, 16, 1.0)),
        "lsh": added(faiss.IndexLSH(D, 16)),
        "ivf_sq8": added(faiss.IndexIVFScalarQuantizer(faiss.IndexFlatL2(D), D, 4, faiss.ScalarQuantizer.QT_8bit)),
        "untrained": ivf(l2, 5, 2),
    }
    return made, queries


WIDE_D, WIDE_N, WIDE_QUERIES = 96, 3000, 8
WIDE_CASES = [(16, 50), (16, 10), (16, 200), (64, 50), (64, 100)]  # efSearch and k


def wide_vectors():
    """Whole numbers from -128 to 127: products and squares of distances are exact in float32."""
    state, out = 1, []
    for _ in range((WIDE_N + WIDE_QUERIES) * WIDE_D):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 56) - 128)
    x = np.array(out, dtype="float32").reshape(-1, WIDE_D)
    return x[:WIDE_N], x[WIDE_N:]


def write_graphs(directory):
    """Writes HNSW graphs, without the vectors at the end of the file."""
    x, _ = wide_vectors()
    for name, metric in (("ip", faiss.METRIC_INNER_PRODUCT), ("l2", faiss.METRIC_L2)):
        index = faiss.IndexHNSWFlat(WIDE_D, 8, metric)
        index.add(x)
        graph = faiss.serialize_index(index).tobytes()[: -x.nbytes]
        with open(os.path.join(directory, "wide_%s.graph.gz" % name), "wb") as f:
            f.write(gzip.compress(graph, mtime=0))


def write_wide(directory):
    """Writes the scores of searches in the graphs."""
    x, queries = wide_vectors()
    out = []
    for name in ("ip", "l2"):
        with gzip.open(os.path.join(directory, "wide_%s.graph.gz" % name)) as f:
            index = faiss.deserialize_index(np.frombuffer(f.read() + x.tobytes(), dtype="uint8"))
        for ef, k in WIDE_CASES:
            index.hnsw.efSearch = ef
            scores, _ = index.search(queries, k)
            out.append({"name": name, "ef": ef, "scores": scores.astype(int).tolist()})
    with open(os.path.join(directory, "wide_%s.json" % faiss.__version__), "w") as f:
        json.dump(out, f, sort_keys=True, separators=(",", ":"))
        f.write("\n")


def main():
    if sys.argv[1] == "--read":
        with open(sys.argv[3]) as f:
            json.dump(found(faiss.read_index(sys.argv[2]), json.load(f)), sys.stdout)
        return
    if sys.argv[1] == "--wide":
        write_wide(sys.argv[2])
        return
    made, queries = indexes()
    out = {"version": faiss.__version__, "queries": queries.tolist(), "indexes": {}}
    for name, index in made.items():
        faiss.write_index(index, os.path.join(sys.argv[1], name + ".faiss"))
        if index.is_trained and index.ntotal > 0:
            out["indexes"][name] = found(index, queries)
    write_graphs(sys.argv[1])
    write_wide(sys.argv[1])
    tied = faiss.IndexIDMap2(faiss.IndexHNSWFlat(2, 4))
    tied.add_with_ids(np.ones((100, 2), dtype="float32"), np.arange(100)[::-1].astype("int64"))
    faiss.write_index(tied, os.path.join(sys.argv[1], "tied_hnsw.faiss"))
    bits = faiss.IndexBinaryFlat(16)
    bits.add(np.arange(8, dtype="uint8").reshape(4, 2))
    faiss.write_index_binary(bits, os.path.join(sys.argv[1], "binary.faiss"))
    with open(os.path.join(sys.argv[1], "expected.json"), "w") as f:
        json.dump(out, f, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
