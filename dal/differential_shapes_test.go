package dal_test

func init() {
	for s := range gateShapes { // what the gate lets out, the store does
		scopedShapes[s] = true
	}
}

// scopedShapes lists what statements of the differential test are made of, as far as the store is to scope it: a refusal of a statement that is made of
// these alone fails the test. What is not listed may be refused, and is counted.
var scopedShapes = map[string]bool{
	// gorm's reading methods
	"Find": true, "First": true, "Take": true, "Count": true, "Pluck": true, "Scan": true, "Rows": true, "Row": true, "FindInBatches": true,
	"Find maps": true, "Model": true, "Unscoped": true, "Scopes": true,
	"Where text": true, "Where text with OR": true, "Where map": true, "Where struct": true, "Where IN": true, "Where row IN": true, "Where named": true,
	"Where group": true, "Where clause": true, "Or": true, "Not": true,
	"Order": true, "Limit": true, "Offset": true, "Group": true, "Having": true, "Distinct": true, "Select text": true, "Select columns": true,
	"Preload": true, "Generics": true, "PrepareStmt": true, "Locking": true,
	// gorm's writing methods
	"Create": true, "Create batch": true, "Create map": true, "Create with associations": true, "Association Append": true, "Association Clear": true, "Association Delete": true, "Association Replace": true, "Delete with associations": true, "Association Find": true, "OnConflict": true, "Save": true, "FirstOrCreate": true, "Update": true, "Updates map": true, "Updates struct": true, "UpdateColumn": true,
	"Delete": true, "Delete by key": true, "missing WHERE": true, "AllowGlobalUpdate": true, "FirstOrInit": true, "Generics write": true,
	"Joins relation": true, "Joins relation with conditions": true, "InnerJoins relation": true, "Joins text": true, "Joins sub-query": true,
	"Table name": true, "Table alias": true, "Table list": true, "Table sub-query": true, "Table global": true, "Find a DTO": true,
	"Where text with sub-select": true, "Where sub-query value": true, "Select text with sub-select": true,
	"Update sub-query value": true, "Update text with sub-select": true,
	"hostile": true,
}

// gateShapes lists what texts are made of, as far as the gate is to scope them.
var gateShapes = map[string]bool{
	"raw": true, "raw write": true, "DB().Query": true, "DB().Exec": true, "Connection": true,
	"SELECT": true, "star": true, "DISTINCT": true, "GROUP BY": true, "HAVING": true, "LIMIT": true, "window function": true, "odd literal": true, "tenant_id named": true, "@tenant": true, "FILTER": true,
	"comma join": true, "JOIN": true, "INNER JOIN": true, "LEFT JOIN": true, "LEFT OUTER JOIN": true, "RIGHT JOIN": true, "CROSS JOIN": true, "STRAIGHT_JOIN": true,
	"NATURAL JOIN": true, "USING": true, "outer join USING": true, "self join": true, "derived table": true, "global table": true, "local table": true,
	"CTE": true, "recursive CTE": true, "CTE before a write": true,
	"UNION": true, "UNION ALL": true, "INTERSECT": true, "EXCEPT": true, "INTERSECT ALL": true, "EXCEPT ALL": true, "set operation in parentheses": true,
	"scalar sub-select": true, "IN sub-select": true, "row IN sub-select": true, "EXISTS": true, "correlated sub-select": true,
	"sub-select in ON": true, "sub-select in HAVING": true, "sub-select in ORDER BY": true, "sub-select in VALUES": true, "sub-select in SET": true,
	"FOR UPDATE": true, "INSERT VALUES": true, "INSERT SET": true, "INSERT SELECT": true, "upsert": true, "upsert WHERE": true,
	"UPDATE": true, "UPDATE alias": true, "UPDATE join": true, "UPDATE two tables": true, "UPDATE FROM": true, "UPDATE LIMIT": true,
	"DELETE": true, "DELETE join": true, "DELETE LIMIT": true,
}
