// The messages, enumerations and services of the public API, version 1.
export * from "./gen/quorate/v1/access_pb.js";
export * from "./gen/quorate/v1/allocation_pb.js";
export * from "./gen/quorate/v1/change_pb.js";
export * from "./gen/quorate/v1/common_pb.js";
export * from "./gen/quorate/v1/decision_pb.js";
export * from "./gen/quorate/v1/event_pb.js";
export * from "./gen/quorate/v1/item_pb.js";
export * from "./gen/quorate/v1/revision_pb.js";
export * from "./gen/quorate/v1/scheduled_limit_pb.js";
export * from "./gen/quorate/v1/tree_pb.js";
