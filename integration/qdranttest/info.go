package qdranttest

import (
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// info describes a collection as it is now.
func (c *collection) info() *qdrant.CollectionInfo {
	seen := c.read()
	c.mu.Lock()
	config, indexes := c.config, c.indexes
	c.settle(time.Now())
	queued := uint64(len(c.pending))
	c.mu.Unlock()

	count := uint64(len(seen.points))
	var indexed uint64 // small dense vectors are searched without an index, sparse ones always with one
	for name := range seen.vectors.sparse {
		for _, p := range seen.points {
			if _, has := p.vectors[name]; has {
				indexed++
			}
		}
	}
	info := &qdrant.CollectionInfo{
		Status:              qdrant.CollectionStatus_Green,
		OptimizerStatus:     &qdrant.OptimizerStatus{Ok: true},
		SegmentsCount:       1,
		PointsCount:         &count,
		IndexedVectorsCount: &indexed,
		UpdateQueue:         &qdrant.UpdateQueueInfo{Length: queued},
		PayloadSchema:       map[string]*qdrant.PayloadSchemaInfo{},
		Config: &qdrant.CollectionConfig{
			Params: &qdrant.CollectionParams{
				ShardNumber:            max(config.GetShardNumber(), 1),
				OnDiskPayload:          config.OnDiskPayload == nil || config.GetOnDiskPayload(),
				VectorsConfig:          proto.CloneOf(config.GetVectorsConfig()),
				SparseVectorsConfig:    proto.CloneOf(config.GetSparseVectorsConfig()),
				ReplicationFactor:      proto.Uint32(max(config.GetReplicationFactor(), 1)),
				WriteConsistencyFactor: proto.Uint32(max(config.GetWriteConsistencyFactor(), 1)),
			},
			HnswConfig: &qdrant.HnswConfigDiff{
				M: proto.Uint64(16), EfConstruct: proto.Uint64(100), FullScanThreshold: proto.Uint64(10000),
				MaxIndexingThreads: proto.Uint64(0), OnDisk: proto.Bool(false),
			},
			OptimizerConfig: &qdrant.OptimizersConfigDiff{
				DeletedThreshold: proto.Float64(0.2), VacuumMinVectorNumber: proto.Uint64(1000),
				DefaultSegmentNumber: proto.Uint64(0), IndexingThreshold: proto.Uint64(10000), FlushIntervalSec: proto.Uint64(5),
			},
			WalConfig: &qdrant.WalConfigDiff{
				WalCapacityMb: proto.Uint64(32), WalSegmentsAhead: proto.Uint64(0), WalRetainClosed: proto.Uint64(1),
			},
			Metadata: clonePayload(config.GetMetadata()),
		},
	}
	if config.GetHnswConfig() != nil {
		proto.Merge(info.Config.HnswConfig, config.GetHnswConfig())
	}
	if config.GetOptimizersConfig() != nil {
		proto.Merge(info.Config.OptimizerConfig, config.GetOptimizersConfig())
	}
	if config.GetWalConfig() != nil {
		proto.Merge(info.Config.WalConfig, config.GetWalConfig())
	}
	if config.GetQuantizationConfig() != nil {
		info.Config.QuantizationConfig = proto.CloneOf(config.GetQuantizationConfig())
	}
	if config.GetStrictModeConfig() != nil {
		info.Config.StrictModeConfig = proto.CloneOf(config.GetStrictModeConfig())
	}
	for key, index := range indexes {
		points := index.countPoints(seen.points)
		info.PayloadSchema[key] = &qdrant.PayloadSchemaInfo{DataType: index.schema, Params: proto.CloneOf(index.params), Points: &points}
	}
	return info
}
