package graphbuild

// dot returns the inner product of two rows of the same length: dot(a, b) and
// dot(b, a) have the same bits, and the order of the sum is fixed (four partial
// sums, no fused multiply-add), so results do not depend on the machine. With
// [dotUnit] it is the one place where distances that end up in edges are made.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i] * b[i])
		s1 += float64(a[i+1] * b[i+1])
		s2 += float64(a[i+2] * b[i+2])
		s3 += float64(a[i+3] * b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// dotUnit is dot(a, v/length) without a copy of v.
func dotUnit(a []float64, v []float32, length float64) float64 {
	v = v[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i] * (float64(v[i]) / length))
		s1 += float64(a[i+1] * (float64(v[i+1]) / length))
		s2 += float64(a[i+2] * (float64(v[i+2]) / length))
		s3 += float64(a[i+3] * (float64(v[i+3]) / length))
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i] * (float64(v[i]) / length))
	}
	return (s0 + s1) + (s2 + s3)
}
