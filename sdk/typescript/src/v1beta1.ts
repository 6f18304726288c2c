// The messages, enumerations and services that may still change.
export * from "./gen/quorate/v1beta1/activity_pb.js";
export * from "./gen/quorate/v1beta1/limit_request_pb.js";
export * from "./gen/quorate/v1beta1/webhook_pb.js";
