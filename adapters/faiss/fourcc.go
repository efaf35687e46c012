package faiss

import (
	"bytes"
	"fmt"
	"strings"
)

// typeNames are the types of index by the four characters that their files
// begin with, up to FAISS 1.15.
var typeNames = map[string]string{
	"IxFI": "IndexFlatIP", "IxF2": "IndexFlatL2", "IxFl": "IndexFlat",
	"IxMp": "IndexIDMap", "IxM2": "IndexIDMap2",
	"IHNf": "IndexHNSWFlat", "IwFl": "IndexIVFFlat",

	"null": "no index", "IxFP": "IndexFlatL2Panorama", "IxFp": "IndexFlatIPPanorama",
	"IxHE": "IndexLSH", "IxHe": "IndexLSH",
	"IxPQ": "IndexPQ", "IxPo": "IndexPQ", "IxPq": "IndexPQ",
	"IxRQ": "IndexResidualQuantizer", "IxRq": "IndexResidualQuantizer",
	"IxLS": "IndexLocalSearchQuantizer",
	"IxPR": "IndexProductResidualQuantizer", "IxPL": "IndexProductLocalSearchQuantizer",
	"ImRQ": "ResidualCoarseQuantizer", "Imiq": "MultiIndexQuantizer",
	"ILfs": "IndexLocalSearchQuantizerFastScan", "IRfs": "IndexResidualQuantizerFastScan",
	"IPRf": "IndexProductResidualQuantizerFastScan", "IPLf": "IndexProductLocalSearchQuantizerFastScan",
	"IVLf": "IndexIVFLocalSearchQuantizerFastScan", "IVRf": "IndexIVFResidualQuantizerFastScan",
	"NPLf": "IndexIVFProductLocalSearchQuantizerFastScan", "NPRf": "IndexIVFProductResidualQuantizerFastScan",
	"IvFl": "IndexIVFFlat of an early version", "IvFL": "IndexIVFFlat of an early version",
	"IwFd": "IndexIVFFlatDedup", "IwPn": "IndexIVFFlatPanorama", "IwP2": "IndexIVFFlatPanorama",
	"IxSQ": "IndexScalarQuantizer", "IxLa": "IndexLattice",
	"IvSQ": "IndexIVFScalarQuantizer", "IwSQ": "IndexIVFScalarQuantizer", "IwSq": "IndexIVFScalarQuantizer",
	"IwLS": "IndexIVFLocalSearchQuantizer", "IwRQ": "IndexIVFResidualQuantizer",
	"IwPL": "IndexIVFProductLocalSearchQuantizer", "IwPR": "IndexIVFProductResidualQuantizer",
	"IwSh": "IndexIVFSpectralHash", "IwIQ": "IndexIVFIndependentQuantizer",
	"IvPQ": "IndexIVFPQ", "IwPQ": "IndexIVFPQ", "IvQR": "IndexIVFPQR", "IwQR": "IndexIVFPQR",
	"IxPT": "IndexPreTransform", "IxRF": "IndexRefine", "IxRP": "IndexRefinePanorama", "Ix2L": "Index2Layer",
	"IH00": "IndexHNSW", "IHNp": "IndexHNSWPQ", "IHNs": "IndexHNSWSQ", "IHN2": "IndexHNSW2Level",
	"IHNc": "IndexHNSWCagra", "IHc2": "IndexHNSWCagra", "IHfP": "IndexHNSWFlatPanorama",
	"INSf": "IndexNSGFlat", "INSp": "IndexNSGPQ", "INSs": "IndexNSGSQ", "INNf": "IndexNNDescentFlat",
	"IPfs": "IndexPQFastScan", "IwPf": "IndexIVFPQFastScan",
	"IRMf": "IndexRowwiseMinMax", "IRMh": "IndexRowwiseMinMaxFP16",
	"IxEd": "IndexEDEN", "IxEe": "IndexEDEN", "IwEd": "IndexIVFEDEN", "IwEe": "IndexIVFEDEN",
	"Ixrq": "IndexRaBitQ", "Ixrr": "IndexRaBitQ", "Iwrq": "IndexIVFRaBitQ", "Iwrr": "IndexIVFRaBitQ",
	"Irfn": "IndexRaBitQFastScan", "Irfs": "IndexRaBitQFastScan",
	"Iwrn": "IndexIVFRaBitQFastScan", "Iwrf": "IndexIVFRaBitQFastScan",
	"ILVQ": "IndexSVSVamanaLVQ", "ISVL": "IndexSVSVamanaLeanVec", "ISVD": "IndexSVSVamana", "ISV2": "IndexSVSVamana",
	"ISVF": "IndexSVSFlat", "ISIQ": "IndexSVSIVFLVQ", "ISIL": "IndexSVSIVFLeanVec", "ISID": "IndexSVSIVF",
	"IBxF": "IndexBinaryFlat", "IBwF": "IndexBinaryIVF", "IBFf": "IndexBinaryFromFloat",
	"IBHf": "IndexBinaryHNSW", "IBHc": "IndexBinaryHNSWCagra", "IBHh": "IndexBinaryHash", "IBHm": "IndexBinaryMultiHash",
	"IBMp": "IndexBinaryIDMap", "IBM2": "IndexBinaryIDMap2",
}

// foreignFormats are what other files begin with.
var foreignFormats = []struct{ magic, name string }{
	{"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not the file itself: fetch it with git lfs pull"},
	{"\x93NUMPY", "a NumPy array: mmplug graph build --vectors reads it, and faiss.write_index makes an index of it"},
	{"\x80\x04", "a Python pickle: the index is the .faiss file beside it"},
	{"\x80\x05", "a Python pickle: the index is the .faiss file beside it"},
	{"\x1f\x8b", "a gzip file: unpack it first"},
	{"\x28\xb5\x2f\xfd", "a Zstandard file: unpack it first"},
	{"PK\x03\x04", "a zip file: unpack it first"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"\x89HDF", "an HDF5 file"},
	{"{", "JSON text: are the index and the IDs swapped?"},
	{"\"", "JSON text: are the index and the IDs swapped?"},
	{"<", "a text of markup, such as an error page saved as a file"},
}

// checkForeign recognises files that are no index of vectors of floats by how
// they begin, and unknown types of index.
func checkForeign(head []byte) error {
	for _, f := range foreignFormats {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return fmt.Errorf("%w: it is %s", errForeign, f.name)
		}
	}
	if len(head) < 4 {
		return fmt.Errorf("%w: it has %d bytes", errForeign, len(head))
	}
	code := string(head[:4])
	if strings.HasPrefix(code, "IB") && typeNames[code] != "" {
		return unsupported("%s (%q) compares bits; indexes of float vectors are supported", typeNames[code], code)
	}
	if typeNames[code] == "" {
		return fmt.Errorf("%w: the four-character code %q is of no type of index up to FAISS 1.15; it is another kind of file or made by a newer version", errForeign, code)
	}
	return nil
}
