// C interface to libfaiss for cgo. A function that can fail returns 0 or NULL
// and sets *err to a message, which the caller frees.
#ifndef MMPLUG_FAISS_NATIVE_H
#define MMPLUG_FAISS_NATIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct native_index native_index;

const char *native_version(void);

// Limits the threads of a BLAS that has its own, for the whole process.
void native_blas_threads(int threads);

native_index *native_open(const char *path, char **err);
void native_free(native_index *index);

int native_dimension(const native_index *index);
int64_t native_count(const native_index *index);
int native_metric(const native_index *index);
int native_trained(const native_index *index);
char *native_type(const native_index *index);

// Sets a parameter of the search, such as nprobe.
int native_set(native_index *index, const char *name, double value, char **err);

// Finds the k nearest of each of n queries with the given number of threads.
// Missing ones have the label -1. Returns the number of threads that OpenMP
// said the search may use.
int native_search(const native_index *index, int64_t n, const float *queries, int64_t k, int threads,
                  float *distances, int64_t *labels, char **err);

// Writes the ID of each vector. Returns 0 when it cannot tell and 2 when they
// are the positions.
int native_ids(const native_index *index, int64_t *ids, char **err);

// Writes all vectors, in the order of native_ids.
int native_vectors(const native_index *index, float *vectors, char **err);

#ifdef __cplusplus
}
#endif

#endif
