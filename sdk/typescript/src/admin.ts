// The messages, enumerations and services for those who operate a cluster.
export * from "./gen/quorate/admin/v1/access_pb.js";
export * from "./gen/quorate/admin/v1/audit_pb.js";
export * from "./gen/quorate/admin/v1/cluster_pb.js";
export * from "./gen/quorate/admin/v1/configuration_pb.js";
export * from "./gen/quorate/admin/v1/cordon_pb.js";
export * from "./gen/quorate/admin/v1/debug_pb.js";
export * from "./gen/quorate/admin/v1/snapshot_pb.js";
export * from "./gen/quorate/admin/v1/upkeep_pb.js";
