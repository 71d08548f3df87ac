package dal

// wordClass says where a word may stand in text that a caller wrote.
type wordClass uint8

const (
	// wordOperand may stand before a parenthesis without being called: AND (...), IN (...), CASE WHEN (...).
	wordOperand wordClass = 1 << iota
	// wordFunction may be called: it reads its arguments and nothing else.
	wordFunction
	// wordNever may not stand anywhere: it opens another table or statement.
	wordNever
	// wordClause may not stand outside parentheses where the text itself stands outside: it ends the place it stands in.
	wordClause
)

// words is the closed list. A word that is not on it is a column's name; it may not be called.
var words = classed(map[wordClass]string{
	wordOperand: "AND OR NOT XOR IN IS NULL LIKE ESCAPE BETWEEN CASE WHEN THEN ELSE END AS ASC DESC DISTINCT ALL BY OVER PARTITION ROWS RANGE " +
		"PRECEDING FOLLOWING UNBOUNDED CURRENT ROW FILTER REGEXP RLIKE GLOB DIV INTERVAL COLLATE BINARY USING SEPARATOR NULLS FIRST LAST BOTH LEADING TRAILING",
	wordFunction: "COUNT SUM MIN MAX AVG TOTAL GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG JSON_GROUP_ARRAY JSON_GROUP_OBJECT BIT_AND BIT_OR BIT_XOR " +
		"STD STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP " +
		"ROW_NUMBER RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE LAG LEAD FIRST_VALUE LAST_VALUE NTH_VALUE " +
		"COALESCE IFNULL NULLIF IF IIF GREATEST LEAST ABS ROUND FLOOR CEIL CEILING TRUNCATE MOD POW POWER SQRT SIGN EXP LN LOG LOG2 LOG10 " +
		"SIN COS TAN ASIN ACOS ATAN ATAN2 DEGREES RADIANS PI RAND RANDOM CRC32 " +
		"LOWER UPPER LCASE UCASE LENGTH CHAR_LENGTH CHARACTER_LENGTH OCTET_LENGTH CONCAT CONCAT_WS SUBSTR SUBSTRING SUBSTRING_INDEX TRIM LTRIM RTRIM REPLACE " +
		"INSTR LOCATE POSITION LEFT RIGHT LPAD RPAD REPEAT REVERSE HEX UNHEX ASCII ORD CHAR FIELD FIND_IN_SET ELT FORMAT PRINTF QUOTE MD5 SHA1 SHA2 " +
		"CAST CONVERT TYPEOF UUID " +
		"NOW CURDATE CURTIME CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME UTC_TIMESTAMP UTC_DATE UTC_TIME LOCALTIME LOCALTIMESTAMP DATE TIME DATETIME TIMESTAMP YEAR MONTH DAY DAYOFWEEK DAYOFMONTH " +
		"DAYOFYEAR WEEK WEEKDAY QUARTER HOUR MINUTE SECOND MICROSECOND UNIX_TIMESTAMP FROM_UNIXTIME DATE_FORMAT STR_TO_DATE TIME_FORMAT STRFTIME JULIANDAY UNIXEPOCH " +
		"DATE_ADD DATE_SUB ADDDATE SUBDATE ADDTIME SUBTIME DATEDIFF TIMEDIFF TIMESTAMPDIFF TIMESTAMPADD LAST_DAY MAKEDATE EXTRACT " +
		"JSON JSON_EXTRACT JSON_UNQUOTE JSON_VALUE JSON_CONTAINS JSON_CONTAINS_PATH JSON_SET JSON_INSERT JSON_REPLACE JSON_REMOVE JSON_OBJECT JSON_ARRAY " +
		"JSON_LENGTH JSON_ARRAY_LENGTH JSON_TYPE JSON_VALID JSON_KEYS JSON_SEARCH JSON_QUOTE JSON_MERGE_PATCH JSON_PATCH " +
		"INET_ATON INET_NTOA INET6_ATON INET6_NTOA DECIMAL SIGNED UNSIGNED VARCHAR NCHAR NUMERIC FLOAT DOUBLE VARBINARY",
	wordNever:  "SELECT TABLE WITH UNION INTERSECT EXCEPT INTO PROCEDURE",
	wordClause: "FROM WHERE ON GROUP HAVING ORDER LIMIT FOR WINDOW JOIN RETURNING",
})

func classed(lists map[wordClass]string) map[string]wordClass {
	all := map[string]wordClass{}
	for class, list := range lists {
		for i := 0; i < len(list); {
			j := i
			for j < len(list) && list[j] != ' ' {
				j++
			}
			if j > i {
				all[list[i:j]] |= class
			}
			i = j + 1
		}
	}
	return all
}

// longestWord bounds what is looked up; a longer word is a name.
const longestWord = 24

// classOf returns a word's class, whatever its case; 0 for one that is not on the list. It allocates nothing.
func classOf(word string) wordClass {
	if len(word) > longestWord {
		return 0
	}
	var upper [longestWord]byte
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	return words[string(upper[:len(word)])]
}

// isText reports whether word is want, which is in capitals, whatever its case.
func isText(word, want string) bool {
	if len(word) != len(want) {
		return false
	}
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}
