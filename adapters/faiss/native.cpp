//go:build faiss

#include "native.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include <omp.h>

#include <faiss/AutoTune.h>
#include <faiss/IVFlib.h>
#include <faiss/IndexFlatCodes.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_io.h>

struct native_index {
    std::unique_ptr<faiss::Index> faiss;
};

namespace {

// Runs f; whatever it throws becomes the message.
template <typename F>
int guarded(char **err, F f) {
    try {
        return f();
    } catch (const std::exception &e) {
        *err = strdup(e.what());
    } catch (...) {
        *err = strdup("an exception that is not a std::exception");
    }
    return 0;
}

std::string type_of(const faiss::Index *index) {
    int status = 0;
    std::unique_ptr<char, void (*)(void *)> name(
            abi::__cxa_demangle(typeid(*index).name(), nullptr, nullptr, &status), std::free);
    std::string type = status == 0 ? name.get() : typeid(*index).name();
    size_t namespace_end = type.find("::");
    if (namespace_end != std::string::npos && type.find('<') == std::string::npos) {
        type = type.substr(namespace_end + 2);
    }
    if (auto map = dynamic_cast<const faiss::IndexIDMap *>(index)) {
        type = std::string(dynamic_cast<const faiss::IndexIDMap2 *>(index) ? "IndexIDMap2" : "IndexIDMap") + "(" +
                type_of(map->index) + ")";
    } else if (auto pre = dynamic_cast<const faiss::IndexPreTransform *>(index)) {
        type += "(" + type_of(pre->index) + ")";
    } else if (auto refine = dynamic_cast<const faiss::IndexRefine *>(index)) {
        type += "(" + type_of(refine->base_index) + ")";
    }
    return type;
}

// Throws when an index does not have as many vectors as it says, as far as its
// type is known: a search would read beyond them.
void check_counts(const faiss::Index *index, int64_t count) {
    auto require = [](bool holds, const char *what) {
        if (!holds) {
            throw std::runtime_error(what);
        }
    };
    require(index, "the file holds no index, or one without its storage");
    require(index->d > 0 && index->ntotal >= 0 && index->ntotal == count,
            "the index has another number of vectors than it says");
    if (auto flat = dynamic_cast<const faiss::IndexFlatCodes *>(index)) {
        require(flat->code_size > 0 && flat->codes.size() / flat->code_size == static_cast<size_t>(count) &&
                        flat->codes.size() % flat->code_size == 0,
                "the codes of the index are more or fewer than its vectors");
    } else if (auto map = dynamic_cast<const faiss::IndexIDMap *>(index)) {
        require(map->id_map.size() == static_cast<size_t>(count), "the ID map has more or fewer IDs than vectors");
        check_counts(map->index, count);
    } else if (auto pre = dynamic_cast<const faiss::IndexPreTransform *>(index)) {
        check_counts(pre->index, count);
    } else if (auto refine = dynamic_cast<const faiss::IndexRefine *>(index)) {
        check_counts(refine->base_index, count);
        check_counts(refine->refine_index, count);
    } else if (auto hnsw = dynamic_cast<const faiss::IndexHNSW *>(index)) {
        require(hnsw->hnsw.levels.size() == static_cast<size_t>(count) &&
                        hnsw->hnsw.offsets.size() == static_cast<size_t>(count) + 1,
                "the HNSW graph has more or fewer nodes than there are vectors");
        check_counts(hnsw->storage, count);
    } else if (auto ivf = dynamic_cast<const faiss::IndexIVF *>(index)) {
        require(ivf->invlists, "the file does not have the inverted lists");
        require(ivf->invlists->nlist == ivf->nlist && ivf->invlists->code_size == ivf->code_size,
                "the inverted lists are other than the index says");
        size_t total = 0;
        for (size_t list = 0; list < ivf->nlist; list++) {
            total += ivf->invlists->list_size(list);
        }
        require(total == static_cast<size_t>(count), "the inverted lists have more or fewer vectors than the index");
    }
}

// Restores the number of threads of the calling thread.
struct thread_scope {
    int before;
    explicit thread_scope(int threads) : before(omp_get_max_threads()) {
        omp_set_num_threads(threads);
    }
    ~thread_scope() {
        omp_set_num_threads(before);
    }
};

}  // namespace

extern "C" {

const char *native_version(void) {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(FAISS_VERSION_MAJOR) "." TEXT(FAISS_VERSION_MINOR) "." TEXT(FAISS_VERSION_PATCH);
}

void native_blas_threads(int threads) {
    // The BLAS of the system may be OpenBLAS with threads of its own, which
    // OpenMP does not know of.
    using setter = void (*)(int);
    if (auto set = reinterpret_cast<setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
        set(threads);
    }
}

native_index *native_open(const char *path, char **err) {
    native_index *opened = nullptr;
    guarded(err, [&] {
        std::unique_ptr<faiss::Index> index(faiss::read_index(path));
        check_counts(index.get(), index ? index->ntotal : 0);
        opened = new native_index{std::move(index)};
        return 1;
    });
    return opened;
}

void native_free(native_index *index) {
    delete index;
}

int native_dimension(const native_index *index) {
    return static_cast<int>(index->faiss->d);
}

int64_t native_count(const native_index *index) {
    return index->faiss->ntotal;
}

int native_metric(const native_index *index) {
    return index->faiss->metric_type;
}

int native_trained(const native_index *index) {
    return index->faiss->is_trained;
}

char *native_type(const native_index *index) {
    try {
        return strdup(type_of(index->faiss.get()).c_str());
    } catch (...) {
        return nullptr;
    }
}

int native_set(native_index *index, const char *name, double value, char **err) {
    return guarded(err, [&] {
        faiss::ParameterSpace().set_index_parameter(index->faiss.get(), name, value);
        return 1;
    });
}

int native_search(const native_index *index, int64_t n, const float *queries, int64_t k, int threads,
                  float *distances, int64_t *labels, char **err) {
    return guarded(err, [&] {
        static_assert(sizeof(faiss::Index::idx_t) == sizeof(int64_t), "labels are int64");
        thread_scope scope(threads);
        index->faiss->search(n, queries, k, distances, reinterpret_cast<faiss::Index::idx_t *>(labels));
        return omp_get_max_threads();
    });
}

int native_ids(const native_index *index, int64_t *ids, char **err) {
    return guarded(err, [&] {
        const faiss::Index *f = index->faiss.get();
        if (auto map = dynamic_cast<const faiss::IndexIDMap *>(f)) {
            std::copy(map->id_map.begin(), map->id_map.end(), ids);
            return 1;
        }
        const faiss::IndexIVF *ivf = faiss::ivflib::try_extract_index_ivf(f);
        if (!ivf) {
            return 2;
        }
        size_t at = 0;
        for (size_t list = 0; list < ivf->nlist; list++) {
            size_t size = ivf->invlists->list_size(list);
            faiss::InvertedLists::ScopedIds held(ivf->invlists, list);
            if (at + size > static_cast<size_t>(f->ntotal)) {
                throw std::runtime_error("the inverted lists have more vectors than the index");
            }
            std::copy(held.get(), held.get() + size, ids + at);
            at += size;
        }
        if (at != static_cast<size_t>(f->ntotal)) {
            throw std::runtime_error("the inverted lists have fewer vectors than the index");
        }
        return 1;
    });
}

int native_vectors(const native_index *index, float *vectors, char **err) {
    return guarded(err, [&] {
        const faiss::Index *f = index->faiss.get();
        thread_scope scope(1);
        if (auto map = dynamic_cast<const faiss::IndexIDMap *>(f)) {
            map->index->reconstruct_n(0, f->ntotal, vectors);
        } else if (auto ivf = dynamic_cast<const faiss::IndexIVF *>(f)) {
            size_t at = 0;
            for (size_t list = 0; list < ivf->nlist; list++) {
                size_t size = ivf->invlists->list_size(list);
                for (size_t offset = 0; offset < size; offset++, at++) {
                    if (at >= static_cast<size_t>(f->ntotal)) {
                        throw std::runtime_error("the inverted lists have more vectors than the index");
                    }
                    ivf->reconstruct_from_offset(list, offset, vectors + at * f->d);
                }
            }
        } else if (auto within = faiss::ivflib::try_extract_index_ivf(f)) {
            // Such types reconstruct by ID: put them into the order of the lists.
            std::vector<float> by_id(static_cast<size_t>(f->ntotal) * f->d);
            f->reconstruct_n(0, f->ntotal, by_id.data());
            size_t at = 0;
            for (size_t list = 0; list < within->nlist; list++) {
                faiss::InvertedLists::ScopedIds ids(within->invlists, list);
                for (size_t offset = 0; offset < within->invlists->list_size(list); offset++, at++) {
                    int64_t id = ids[offset];
                    if (id < 0 || id >= f->ntotal || at >= static_cast<size_t>(f->ntotal)) {
                        throw std::runtime_error("the IDs in the inverted lists are not 0 to the number of vectors");
                    }
                    std::copy_n(by_id.data() + id * f->d, f->d, vectors + at * f->d);
                }
            }
        } else {
            f->reconstruct_n(0, f->ntotal, vectors);
        }
        return 1;
    });
}

}  // extern "C"
