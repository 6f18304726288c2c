package quota

// open is Zuul's tenant limits (seed 000): an unset limit is unlimited, limits are free, and a claim at an unknown node
// is admitted and counted at its nearest known ancestor.
var open = Switches{PolicyName: "open", UnsetIs: NoLimit(), ForUnknown: UnknownToAncestor}
