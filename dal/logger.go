package dal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils"
)

// slowStatement is how long a statement takes before it is logged at warn.
const slowStatement = 200 * time.Millisecond

// gormLogger writes what gorm reports to the store's logger: errors, slow statements, and after Debug every statement; texts without their values.
//
// gorm's own slog logger makes the text of each statement before it looks whether anybody wants it, which took 6 % of a query that nobody logged.
type gormLogger struct {
	log   *slog.Logger
	level logger.LogLevel
}

var (
	_ logger.Interface  = (*gormLogger)(nil)
	_ gorm.ParamsFilter = (*gormLogger)(nil)
)

// LogMode returns a logger of another level.
func (l *gormLogger) LogMode(level logger.LogLevel) logger.Interface {
	return &gormLogger{l.log, level}
}

// Info logs a message of gorm's.
func (l *gormLogger) Info(ctx context.Context, message string, data ...any) {
	l.message(ctx, logger.Info, slog.LevelInfo, message, data)
}

// Warn logs a message of gorm's.
func (l *gormLogger) Warn(ctx context.Context, message string, data ...any) {
	l.message(ctx, logger.Warn, slog.LevelWarn, message, data)
}

// Error logs a message of gorm's.
func (l *gormLogger) Error(ctx context.Context, message string, data ...any) {
	l.message(ctx, logger.Error, slog.LevelError, message, data)
}

func (l *gormLogger) message(ctx context.Context, need logger.LogLevel, level slog.Level, message string, data []any) {
	if l.level >= need {
		l.log.LogAttrs(ctx, level, message, slog.Any("data", data))
	}
}

// Trace logs a statement that failed, was slow, or is to be logged anyway. A row that was not found is no failure.
func (l *gormLogger) Trace(ctx context.Context, begin time.Time, statement func() (sql string, rows int64), err error) {
	if !l.log.Enabled(ctx, slog.LevelError) {
		return // nobody listens
	}
	if errors.Is(err, logger.ErrRecordNotFound) {
		err = nil
	}
	took := time.Since(begin)
	var level slog.Level
	switch {
	case l.level >= logger.Error && err != nil:
		level = slog.LevelError
	case l.level >= logger.Warn && took > slowStatement:
		level = slog.LevelWarn
	case l.level >= logger.Info:
		level = slog.LevelInfo
	default:
		return
	}
	if !l.log.Enabled(ctx, level) {
		return
	}
	text, rows := statement()
	attrs := []any{slog.String("duration", fmt.Sprintf("%.3fms", float64(took.Nanoseconds())/1e6)), slog.String("sql", text)}
	if rows != -1 {
		attrs = append(attrs, slog.Int64("rows", rows))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	r := slog.NewRecord(time.Now(), level, "SQL executed", utils.CallerFrame().PC)
	r.Add(slog.Group("trace", attrs...))
	_ = l.log.Handler().Handle(ctx, r)
}

// ParamsFilter keeps the values out of the text.
func (l *gormLogger) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}
