
plugin.protommplug.plugin.v1"4
InfoRequest%
protocol_minor (RprotocolMinor"ä
InfoResponse
name (	Rname
version (	Rversion 
description (	Rdescription
kinds (	Rkinds%
protocol_minor (RprotocolMinor"
capabilities (	Rcapabilities#
config_schema (RconfigSchema"
HealthRequest"
HealthResponse"*
ConfigureRequest
config (Rconfig"
ConfigureResponse"u
Query
text (	Rtext
vector (Rvector
turn (Rturn
history (	Rhistory
path (	Rpath"ä
	Candidate
chunk_id (	RchunkId
score (Rscore
text (	Rtext
metadata (Rmetadata<
parts (2&.mmplug.plugin.v1.Candidate.PartsEntryRparts8

PartsEntry
key (	Rkey
value (Rvalue:8"9
Scored
chunk_id (	RchunkId
score (Rscore"¹
Chunk
id (	Rid
document (	Rdocument
title (	Rtitle
section (	Rsection
ordinal (Rordinal
start (Rstart
end (Rend
text (	Rtext" 
Vector
values (Rvalues"X
CandidatesRequest-
query (2.mmplug.plugin.v1.QueryRquery
limit (Rlimit"Q
CandidatesResponse;

candidates (2.mmplug.plugin.v1.CandidateR
candidates"`
ScoreChunksRequest-
query (2.mmplug.plugin.v1.QueryRquery
	chunk_ids (	RchunkIds"G
ScoreChunksResponse0
scores (2.mmplug.plugin.v1.ScoredRscores",
ChunksRequest
	chunk_ids (	RchunkIds"A
ChunksResponse/
chunks (2.mmplug.plugin.v1.ChunkRchunks"-
VectorsRequest
	chunk_ids (	RchunkIds"E
VectorsResponse2
vectors (2.mmplug.plugin.v1.VectorRvectors"x
LoadCorpusRequest/
chunks (2.mmplug.plugin.v1.ChunkRchunks2
vectors (2.mmplug.plugin.v1.VectorRvectors"
LoadResponse"{
RerankRequest-
query (2.mmplug.plugin.v1.QueryRquery;

candidates (2.mmplug.plugin.v1.CandidateR
candidates"B
RerankResponse0
scores (2.mmplug.plugin.v1.ScoredRscores"
DescribeRequest"=
DescribeResponse)
maximum_distance (RmaximumDistance"6
DistancesRequest
from (	Rfrom
to (	Rto"1
DistancesResponse
	distances (R	distances"H
NeighborhoodRequest
chunk_id (	RchunkId
radius (Rradius"A
Neighbor
chunk_id (	RchunkId
distance (Rdistance"P
NeighborhoodResponse8
	neighbors (2.mmplug.plugin.v1.NeighborR	neighbors"V
Edge
from (	Rfrom
to (	Rto
weight (Rweight
type (	Rtype"
EdgesRequest"=
EdgesResponse,
edges (2.mmplug.plugin.v1.EdgeRedges"
LoadGraphRequest
nodes (	Rnodes,
edges (2.mmplug.plugin.v1.EdgeRedges)
maximum_distance (RmaximumDistance
directed (Rdirected"$
EmbedRequest
texts (	Rtexts"C
EmbedResponse2
vectors (2.mmplug.plugin.v1.VectorRvectors"p
DecodeRequest+
transition_weight (RtransitionWeight2
columns (2.mmplug.plugin.v1.ColumnRcolumns"Ü
Column
	chunk_ids (	RchunkIds
raw (Rraw

normalized (R
normalized
emission (Remission
from (Rfrom
distance (Rdistance!
has_distance (RhasDistance
break (Rbreak"<
DecodeResponse
path (Rpath
scores (Rscores"7
ErrorDetail
kind (	Rkind
cause (	Rcause2ð
BaseE
Info.mmplug.plugin.v1.InfoRequest.mmplug.plugin.v1.InfoResponseK
Health.mmplug.plugin.v1.HealthRequest .mmplug.plugin.v1.HealthResponseT
	Configure".mmplug.plugin.v1.ConfigureRequest#.mmplug.plugin.v1.ConfigureResponse2©
ProviderW

Candidates#.mmplug.plugin.v1.CandidatesRequest$.mmplug.plugin.v1.CandidatesResponseZ
ScoreChunks$.mmplug.plugin.v1.ScoreChunksRequest%.mmplug.plugin.v1.ScoreChunksResponseK
Chunks.mmplug.plugin.v1.ChunksRequest .mmplug.plugin.v1.ChunksResponseN
Vectors .mmplug.plugin.v1.VectorsRequest!.mmplug.plugin.v1.VectorsResponseK
Load#.mmplug.plugin.v1.LoadCorpusRequest.mmplug.plugin.v1.LoadResponse2W
RerankerK
Rerank.mmplug.plugin.v1.RerankRequest .mmplug.plugin.v1.RerankResponse2§
GraphQ
Describe!.mmplug.plugin.v1.DescribeRequest".mmplug.plugin.v1.DescribeResponseT
	Distances".mmplug.plugin.v1.DistancesRequest#.mmplug.plugin.v1.DistancesResponse]
Neighborhood%.mmplug.plugin.v1.NeighborhoodRequest&.mmplug.plugin.v1.NeighborhoodResponseJ
Edges.mmplug.plugin.v1.EdgesRequest.mmplug.plugin.v1.EdgesResponse0J
Load".mmplug.plugin.v1.LoadGraphRequest.mmplug.plugin.v1.LoadResponse2T
EmbedderH
Embed.mmplug.plugin.v1.EmbedRequest.mmplug.plugin.v1.EmbedResponse2V
DecoderK
Decode.mmplug.plugin.v1.DecodeRequest .mmplug.plugin.v1.DecodeResponseB9Z7github.com/mapmatched/mmplug/plugins/internal/wire;wirebproto3