package faiss

import "fmt"

// Metric is how an index compares vectors, numbered as in its file.
type Metric int32

// The metrics of FAISS. The Go code knows the first two.
const (
	MetricInnerProduct  Metric = 0
	MetricL2            Metric = 1 // the square of the Euclidean distance
	MetricL1            Metric = 2
	MetricLinf          Metric = 3
	MetricLp            Metric = 4
	MetricCanberra      Metric = 20
	MetricBrayCurtis    Metric = 21
	MetricJensenShannon Metric = 22
)

var metricNames = map[Metric]string{
	MetricInnerProduct: "inner product", MetricL2: "L2", MetricL1: "L1", MetricLinf: "Linf", MetricLp: "Lp",
	MetricCanberra: "Canberra", MetricBrayCurtis: "Bray-Curtis", MetricJensenShannon: "Jensen-Shannon",
}

// String names the metric.
func (m Metric) String() string {
	if name, known := metricNames[m]; known {
		return name
	}
	return fmt.Sprintf("metric %d", int32(m))
}

// Mode says what the numbers of an index are.
type Mode string

// The modes.
const (
	ModeSimilarity Mode = "similarity" // higher is better: inner product
	ModeDistance   Mode = "distance"   // lower is better: L2 and the others; scores are negated
)

// Mode is the mode of the metric.
func (m Metric) Mode() Mode {
	if m == MetricInnerProduct {
		return ModeSimilarity
	}
	return ModeDistance
}
